"""Simulated WhatsApp Cloud API: messages of one business number, and Meta's errors by their codes.

Every bearer token that does not begin with `wrong` is valid. Fault codes: those in `ERRORS`.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, provider_route
from tidings.sandbox.receipts import ReceiptOrigin
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator
from tidings.sandbox.whatsapp_webhooks import USER_ID

CHANNEL = "whatsapp_cloud"
MAX_TEXT = 4096
TYPES = frozenset(
    {"text", "template", "image", "video", "document", "audio", "sticker", "location", "contacts",
     "interactive", "reaction"}
)  # fmt: skip

_FAULTS = {FaultKind.ERROR: "131000", FaultKind.THROTTLED: "130429", FaultKind.GONE: "131026"}
_DETAILS = {
    FaultKind.THROTTLED: "Cloud API message throughput has been reached.",
    FaultKind.GONE: "The recipient is not on WhatsApp.",
}
_UNNAMED = count(1)
_GROUP = re.compile(r"[A-Za-z0-9_=-]{1,256}", re.ASCII)
_NUMBER = re.compile(r"\+?[1-9][0-9]{6,14}", re.ASCII)

# Code -> HTTP status and title. Where Meta answers 400 or 429 by version, it is 429.
ERRORS: Mapping[int, tuple[int, str]] = {
    0: (401, "AuthException"),
    1: (400, "API Unknown"),
    2: (503, "API Service"),
    3: (500, "API Method"),
    4: (429, "API Too Many Calls"),
    10: (403, "Permission Denied"),
    33: (400, "Parameter value is not valid"),
    100: (400, "Invalid parameter"),
    190: (401, "Access token has expired"),
    200: (403, "API Permission"),
    299: (403, "API Permission"),
    368: (403, "Temporarily blocked for policies violations"),
    506: (400, "Duplicate post"),
    80007: (429, "Rate limit issues"),
    80008: (429, "There have been too many calls to this WhatsApp Business account"),
    130429: (429, "Rate limit hit"),
    130472: (400, "User's number is part of an experiment"),
    130497: (403, "Business account is restricted from messaging users in this country"),
    131000: (500, "Something went wrong"),
    131005: (403, "Access denied"),
    131008: (400, "Required parameter is missing"),
    131009: (400, "Parameter value is not valid"),
    131016: (500, "Service unavailable"),
    131020: (400, "Bad group"),
    131021: (400, "Recipient cannot be sender"),
    131026: (400, "Message undeliverable"),
    131030: (400, "Recipient phone number not in allowed list"),
    131031: (403, "Account has been locked"),
    131037: (400, "Display name has not been approved"),
    131041: (400, "Group unknown"),
    131042: (400, "Business eligibility payment issue"),
    131044: (400, "Business eligibility payment issue"),
    131045: (500, "Incorrect certificate"),
    131047: (400, "Re-engagement message"),
    131048: (429, "Spam rate limit hit"),
    131049: (400, "Not delivered to maintain healthy ecosystem engagement"),
    131050: (400, "User has stopped marketing messages"),
    131051: (400, "Unsupported message type"),
    131052: (400, "Media download error"),
    131053: (400, "Media upload error"),
    131056: (429, "Pair rate limit hit"),
    131057: (500, "Account in maintenance mode"),
    131062: (400, "Business-scoped user id not supported"),
    131063: (400, "Marketing templates are off for Cloud API"),
    131064: (400, "Messaging limit after template misclassification"),
    131207: (403, "Group suspended"),
    131208: (429, "Group rate limit hit"),
    131215: (400, "Groups API not eligible"),
    132000: (400, "Template param count mismatch"),
    132001: (404, "Template does not exist"),
    132005: (400, "Template hydrated text too long"),
    132007: (400, "Template format character policy violated"),
    132008: (400, "Template parameter value invalid"),
    132012: (400, "Template parameter format mismatch"),
    132015: (400, "Template is paused"),
    132016: (400, "Template is disabled"),
    132068: (400, "Flow is blocked"),
    132069: (400, "Flow is throttled"),
    133000: (500, "Incomplete deregistration"),
    133004: (503, "Server temporarily unavailable"),
    133005: (400, "Two step verification PIN mismatch"),
    133006: (400, "Phone number re-verification needed"),
    133008: (400, "Too many two step verification PIN guesses"),
    133009: (400, "Two step verification PIN guessed too fast"),
    133010: (400, "Phone number not registered"),
    133015: (400, "Please wait a few minutes before attempting to register this phone number"),
    133016: (400, "Account register deregister rate limit exceeded"),
    135000: (400, "Generic user error"),
    137000: (400, "Recipient identity key mismatch"),
}


Rejection = tuple[int, str]  # code and details of a request that is rejected before any fault


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes of a number and its messages."""

    def answer(asked: ProviderRequest, _: ProviderArrival, entry: SandboxEntry) -> Response:
        body, number = asked.fields or {}, asked.path["phone_number_id"]
        target = world.callbacks.target(CHANNEL, number)
        if target is not None:
            echo = body.get("biz_opaque_callback_data")
            origin = ReceiptOrigin(CHANNEL, number, _wamid(entry, body), _recipient(body), *target)
            world.callbacks.took(entry.n, origin._replace(echo=None if echo is None else str(echo)))
        return SandboxJson(_accepted(entry, body))

    number = "/v{version:int}.0/{phone_number_id:int}"
    return [
        provider_route(world, f"{number}/messages", ProviderMethod(read, answer, _refused, _FAULTS, _early)),
        Route(number, _number, methods=["GET"]),
    ]


async def _number(request: Request) -> Response:
    """Return the number's details, which `channels test` reads."""
    wrong = _stranger(request.headers)
    if wrong is not None:
        return _error(*wrong)
    id_ = str(request.path_params["phone_number_id"])
    display = f"+1 555-{id_[-4:]:0>4}"
    return SandboxJson(
        {"verified_name": "Sandbox", "display_phone_number": display, "quality_rating": "GREEN", "id": id_}
    )


def _early(asked: ProviderRequest) -> Response | None:
    """Return the answer to a request without a valid token, or to one that marks a message as read."""
    if (wrong := _stranger(asked.headers)) is not None:
        return _error(*wrong)
    return SandboxJson({"success": True}) if asked.text("status") == "read" else None


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message. Its id is the request id or the sender's callback data; others are never copies."""
    body = asked.fields or {}
    wrong, kind = _problem(body), str(body.get("type") or "text")
    said, data = _shown(kind, body.get(kind))
    id_ = asked.headers.get("x-request-id") or body.get("biz_opaque_callback_data") or f"unnamed-{next(_UNNAMED)}"
    problem = None if wrong is None else wrong[1]
    return ProviderArrival(CHANNEL, str(id_)[:256], _shown_recipient(body)[:256], said, data=data, problem=problem)


def _stranger(headers: Mapping[str, str]) -> Rejection | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip() or token.startswith("wrong"):
        return 190, "Invalid OAuth access token - Cannot parse access token"
    return None


def _problem(body: Mapping[str, Any]) -> Rejection | None:
    if body.get("messaging_product") != "whatsapp":
        return 100, "The parameter messaging_product is required."
    to, kind = _recipient(body), body.get("type", "text")
    if not to:
        return 100, "The parameter to is required."
    pattern = _GROUP if body.get("recipient_type") == "group" else _NUMBER if body.get("to") else USER_ID
    if not pattern.fullmatch(to):
        return 100, f"Invalid parameter: {'to' if body.get('to') else 'recipient'}"
    if kind not in TYPES:
        return 131051, f"Message type {str(kind)[:40]} is not supported"
    if not body.get(kind):
        return 131008, f"The parameter {kind} is required."
    if kind == "text":
        return _wrong_text(body[kind])
    if kind == "template" and not (isinstance(body[kind], dict) and body[kind].get("name")):
        return 131008, "The parameter template['name'] is required."
    return None


def _wrong_text(text: object) -> Rejection | None:
    said = text.get("body") if isinstance(text, dict) else None
    if not isinstance(said, str) or not said.strip():
        return 131008, "The parameter text['body'] is required."
    if len(said) > MAX_TEXT:
        return 100, f"Param text['body'] must be at most {MAX_TEXT} characters long."
    return None


def _shown(kind: str, given: object) -> tuple[str, object]:
    """Return what the phone shows of a message: its text, and the rest unchanged."""
    if not isinstance(given, dict):
        return "", given
    if kind == "text":
        return str(given.get("body") or ""), None
    body = given.get("body")
    said = given.get("caption") or (body.get("text") if isinstance(body, dict) else "") or ""
    return str(said), {kind: given}


def _refused(asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    if (wrong := _problem(asked.fields or {})) is not None:
        return _error(*wrong)
    return _error(int(code) if code.isdigit() else 131000, _DETAILS.get(entry.did, ""))


def _recipient(body: Mapping[str, Any]) -> str:
    """Return the phone number, the group or the user id; the phone number wins."""
    return str(body.get("to") or body.get("recipient") or "")


def _shown_recipient(body: Mapping[str, Any]) -> str:
    if body.get("recipient_type") == "group":
        return f"group:{_recipient(body)}"
    return "+" + str(body["to"]).lstrip("+") if body.get("to") else _recipient(body)


def _wamid(entry: SandboxEntry, body: Mapping[str, Any]) -> str:
    to = _recipient(body)
    return f"wamid.{urlsafe_b64encode(f'{to}:{entry.n}'.encode()).decode()}"


def _accepted(entry: SandboxEntry, body: Mapping[str, Any]) -> dict[str, object]:
    to = _recipient(body)
    message = {"id": _wamid(entry, body)}
    if body.get("type") == "template":
        message["message_status"] = "accepted"
    contact = {"input": to, **({"wa_id": to.lstrip("+")} if body.get("to") else {"user_id": to})}
    return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}


def _error(code: int, details: str) -> SandboxJson:
    """Return an error in Meta's envelope; unknown codes get status 400."""
    status, title = ERRORS.get(code, (400, "Unknown error"))
    error: dict[str, object] = {"message": f"(#{code}) {title}", "type": "OAuthException", "code": code}
    error["error_data"] = {"messaging_product": "whatsapp", "details": details or title}
    return SandboxJson({"error": {**error, "fbtrace_id": "SandboxTraceId"}}, status_code=status)
