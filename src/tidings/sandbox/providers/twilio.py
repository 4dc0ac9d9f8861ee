"""Simulated Twilio: `Messages.json`, the account, and errors by their codes.

Twilio's test numbers are refused as with Twilio: +15005550001 is invalid, …2 has no route, …3 is in a region
that is not enabled, …4 opted out, …9 is not mobile; as senders …7 is not ours and …8 has a full queue. A code
from 30000 is reported by a callback: the message is accepted, then marked as failed.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Mapping, Sequence
from email.utils import format_datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.time import moment
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, is_wrong, provider_route
from tidings.sandbox.receipts import ReceiptOrigin
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator
from tidings.sandbox.whatsapp_webhooks import USER_ID

CHANNEL = "twilio"
ACCOUNT = "/2010-04-01/Accounts/{account}"
MAX_TEXT = 1600

ERRORS: Mapping[int, tuple[int, str]] = {
    20003: (401, "Authenticate"),
    20404: (404, "The requested resource was not found"),
    20429: (429, "Too Many Requests"),
    20500: (500, "An internal server error has occurred"),
    21211: (400, "The 'To' number is not a valid phone number."),
    21408: (403, "Permission to send an SMS has not been enabled for the region indicated by the 'To' number"),
    21602: (400, "Message body is required."),
    21603: (400, "A 'From' phone number is required."),
    21604: (400, "A 'To' phone number is required."),
    21606: (400, "The 'From' phone number is not a valid, SMS-capable number for this account."),
    21608: (400, "The 'To' number is unverified. Trial accounts cannot send to unverified numbers."),
    21609: (400, "The 'StatusCallback' URL is not a valid URL."),
    21610: (400, "Attempt to send to unsubscribed recipient"),
    21611: (429, "This 'From' number has exceeded the maximum number of queued messages"),
    21612: (400, "The 'To' number is not currently reachable via SMS from this 'From' number"),
    21614: (400, "The 'To' number is not a valid mobile number."),
    21617: (400, "The concatenated message body exceeds the 1600 character limit."),
    21659: (400, "'From' is not a Twilio phone number or Short Code country mismatch"),
    21660: (400, "Mismatch between the 'From' number and the account"),
    21661: (400, "'From' number is not SMS-capable"),
    21703: (400, "The Messaging Service does not have a phone number available to send a message"),
    21704: (400, "The Messaging Service contains no phone numbers"),
    21705: (400, "The Messaging Service is invalid"),
    21635: (400, "The 'To' number cannot be a landline"),
}
TEST_RECIPIENTS = {
    "+15005550001": 21211,
    "+15005550002": 21612,
    "+15005550003": 21408,
    "+15005550004": 21610,
    "+15005550009": 21614,
}
TEST_SENDERS = {"+15005550007": 21606, "+15005550008": 21611}

_E164 = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_FAULTS = {FaultKind.ERROR: "20500", FaultKind.THROTTLED: "20429", FaultKind.GONE: "21211"}
_CALLBACK_CODES = 30_000  # codes from here on follow after the message was accepted


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes to send messages and to check credentials."""

    async def account(request: Request) -> Response:
        own = {"sid": request.path_params["account"], "friendly_name": "Sandbox", "status": "active", "type": "Trial"}
        return _about(request, own)

    async def listed(request: Request) -> Response:
        found = [entry for entry in reversed(world.recent) if entry.channel == CHANNEL and entry.delivered]
        asked = ProviderRequest(request.scope)
        messages = [_message(asked, entry) for entry in found[:50]]
        return _about(request, {"messages": messages, "page": 0, "page_size": 50})

    def answer(asked: ProviderRequest, _: ProviderArrival, entry: SandboxEntry) -> Response:
        origin = _origin(asked, entry)
        if origin is not None:
            world.callbacks.took(entry.n, origin)
        return SandboxJson(_message(asked, entry), status_code=201)

    return [
        provider_route(world, f"{ACCOUNT}/Messages.json", ProviderMethod(read, answer, error, _FAULTS)),
        Route(f"{ACCOUNT}/Messages.json", listed, methods=["GET"]),
        Route(f"{ACCOUNT}.json", account, methods=["GET"]),
    ]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message; `problem` is Twilio's error code, if it is invalid."""
    to = asked.text("To").removeprefix("whatsapp:")
    text = asked.text("Body")
    data = asked.without("To", "Body") | ({"via": "whatsapp"} if asked.text("To").startswith("whatsapp:") else {})
    return asked.arrival(CHANNEL, to, text, data, _problem(asked, to, text))


def _origin(asked: ProviderRequest, entry: SandboxEntry) -> ReceiptOrigin | None:
    """Return whom to call back: the URL in the form, signed with the token of the request."""
    url, (user, token) = asked.text("StatusCallback"), _credentials(asked)
    if not url or user != asked.path["account"]:
        return None
    return ReceiptOrigin(CHANNEL, user, _sid(entry), asked.text("To"), url, token)


def error(asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    """Return an error of Twilio, or a message that fails later."""
    if (status := http_status(code)) is not None:
        return _error(20_000 + status, status)
    number = int(code) if code.isdigit() else 20500
    if number < _CALLBACK_CODES:
        return _error(number)
    failed = {"status": "failed", "error_code": number, "error_message": "Not delivered"}
    return SandboxJson(_message(asked, entry) | failed, status_code=201)


def _problem(asked: ProviderRequest, to: str, text: str) -> int | None:
    fields = asked.fields or {}
    sender = asked.text("From").removeprefix("whatsapp:")
    if is_wrong(*_credentials(asked)):
        return 20003
    if not re.fullmatch("AC[0-9a-fA-F]{32}", asked.path["account"]):
        return 20404
    if not to:
        return 21604
    if not _E164.fullmatch(to) and not (asked.text("To").startswith("whatsapp:") and USER_ID.fullmatch(to)):
        return 21211
    if not sender and not fields.get("MessagingServiceSid"):
        return 21603
    if not text and not fields.get("MediaUrl") and not fields.get("ContentSid"):
        return 21602
    if len(text) > MAX_TEXT:
        return 21617
    if "StatusCallback" in fields and not asked.text("StatusCallback").startswith(("https://", "http://")):
        return 21609
    return TEST_RECIPIENTS.get(to) or TEST_SENDERS.get(sender)


def _credentials(asked: ProviderRequest) -> tuple[str, str]:
    """Return user and password; empty if there are none."""
    scheme, _, encoded = asked.headers.get("authorization", "").partition(" ")
    try:
        user, _, password = b64decode(encoded, validate=True).decode().partition(":")
    except (Error, ValueError):
        return "", ""
    return (user, password) if scheme.lower() == "basic" else ("", "")


def _about(request: Request, fields: Mapping[str, object]) -> Response:
    if is_wrong(*_credentials(ProviderRequest(request.scope))):
        return _error(20003)
    return SandboxJson({"uri": request.url.path, **fields})


def _sid(entry: SandboxEntry) -> str:
    return f"SM{entry.n:032x}"


def _message(asked: ProviderRequest, entry: SandboxEntry) -> dict[str, object]:
    account, sid = asked.path["account"], _sid(entry)
    uri = f"/2010-04-01/Accounts/{account}/Messages/{sid}"
    made = format_datetime(moment(entry.at // 1_000_000 * 1_000_000))
    media = (asked.fields or {}).get("MediaUrl", [])
    return {
        "sid": sid,
        "account_sid": account,
        "status": "queued",
        "direction": "outbound-api",
        "to": asked.text("To") or entry.to,
        "from": asked.text("From") or None,
        "body": entry.text,
        "num_segments": str(segments(entry.text)),
        "num_media": str(len([media] if isinstance(media, str) else media)),
        "error_code": None,
        "error_message": None,
        "date_created": made,
        "date_updated": made,
        "date_sent": None,
        "price": None,
        "price_unit": None,
        "messaging_service_sid": asked.text("MessagingServiceSid") or None,
        "api_version": "2010-04-01",
        "uri": f"{uri}.json",
        "subresource_uris": {"media": f"{uri}/Media.json"},
    }


def segments(text: str) -> int:
    """Return the number of SMS segments: 160 ASCII or 70 other characters, slightly fewer when split."""
    whole, part = (160, 153) if text.isascii() else (70, 67)
    return 1 if len(text) <= whole else -(-len(text) // part)


def _error(code: int, status: int | None = None) -> Response:
    usual, message = ERRORS.get(code, (400, "Simulated error"))
    status = status or usual
    more = f"https://www.twilio.com/docs/errors/{code}"
    return SandboxJson({"code": code, "message": message, "more_info": more, "status": status}, status_code=status)
