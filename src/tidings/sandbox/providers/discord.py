"""Simulated Discord webhooks, with Discord's error codes and rate-limit headers.

Without `?wait=true` the answer is an empty 204, as with Discord.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidings.model.time import iso
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderEndpoint, ProviderMethod, ProviderRequest, http_status, is_wrong
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "discord"
MAX_TEXT = 2000
MAX_EMBEDS = 10
COMPONENTS_V2 = 1 << 15
SHOWS = ("content", "embeds", "components", "poll")  # a message needs one of these

ERRORS: Mapping[int, tuple[int, str]] = {
    10003: (404, "Unknown Channel"),
    10015: (404, "Unknown Webhook"),
    20016: (429, "This action cannot be performed due to slowmode rate limit"),
    20028: (429, "The write action you are performing on the channel has hit the write rate limit"),
    20029: (429, "The write action you are performing on the server has hit the write rate limit"),
    40062: (429, "Service resource is being rate limited"),
    40333: (403, "internal network error"),
    50006: (400, "Cannot send an empty message"),
    50027: (401, "Invalid Webhook Token"),
    50035: (400, "Invalid Form Body"),
    220001: (400, "Webhooks posted to forum channels must have a thread_name or thread_id"),
    220003: (400, "Webhooks can only create threads in forum channels"),
}

_FAULTS = {FaultKind.ERROR: "500", FaultKind.THROTTLED: "429", FaultKind.GONE: "10003"}
_AUTHOR = {
    **{"bot": True, "avatar": None, "discriminator": "0000", "public_flags": 0, "flags": 0},
    **{"global_name": None, "primary_guild": None},
}
_LIMITS = {
    "via": "1.1 sandbox",  # without it, clients assume a proxy's block page
    "x-ratelimit-limit": "5",
    "x-ratelimit-remaining": "4",
    "x-ratelimit-reset-after": "2.000",
    "x-ratelimit-bucket": "sandbox",
}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the webhook routes, with and without the API version in the path."""
    endpoint = ProviderEndpoint(world, ProviderMethod(read, answer, error, _FAULTS))
    paths = ("/api/webhooks/{id}/{token}", "/api/v{version:int}/webhooks/{id}/{token}")
    return [
        route
        for path in paths
        for route in (Route(path, endpoint, methods=["POST"]), Route(path, _about, methods=["GET"]))
    ]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message; `problem` is Discord's error code, if it is invalid."""
    to = asked.query.get("thread_id") or asked.path["id"]
    text = asked.text("content")
    data = {name: value for name, value in _fields(asked).items() if name != "content"}
    return asked.arrival(CHANNEL, to, text, data, _problem(asked, text))


def answer(asked: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    """Return the message, or 204."""
    if asked.query.get("wait", "").lower() not in ("true", "1"):
        return Response(status_code=204, headers=_LIMITS)
    fields = _fields(asked)
    made = {
        "id": str(1_000_000_000_000_000_000 + entry.n),
        "type": 0,
        "content": arrival.text,
        "channel_id": entry.to,
        "author": {**_AUTHOR, "id": asked.path["id"], "username": fields.get("username") or "Sandbox"},
        "attachments": [],
        "embeds": [{"type": "rich", **embed} for embed in fields.get("embeds") or []],
        "mentions": [],
        "mention_roles": [],
        "mention_everyone": False,
        "pinned": False,
        "tts": bool(fields.get("tts")),
        "timestamp": iso(entry.at),
        "edited_timestamp": None,
        "flags": 0,
        "components": _numbered(fields.get("components") or [], itertools.count(1)),
        "webhook_id": asked.path["id"],
    }
    return SandboxJson(made, headers=_LIMITS)


def error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    """Return a Discord error."""
    if entry.did is FaultKind.THROTTLED:
        return _throttled(entry.wait)
    if entry.did is FaultKind.ERROR:
        return SandboxJson({"message": "500: Internal Server Error", "code": 0}, status_code=500)
    if (status := http_status(code)) is not None:
        return Response("", status_code=status, media_type="text/html")
    return _error(int(code) if code.isdigit() else 50035)


def _problem(asked: ProviderRequest, text: str) -> int | None:
    refused = _refusal(asked)
    if refused is not None:
        return refused
    fields = _fields(asked)
    embeds = fields.get("embeds") or []
    if asked.fields is None or len(text) > MAX_TEXT or not isinstance(embeds, list) or len(embeds) > MAX_EMBEDS:
        return 50035
    flags = fields.get("flags")
    if isinstance(flags, int) and flags & COMPONENTS_V2 and (text or embeds or fields.get("poll")):
        return 50035
    return None if any(fields.get(name) for name in SHOWS) else 50006


def _numbered(components: Sequence[Mapping[str, Any]], ids: Iterator[int]) -> list[Mapping[str, Any]]:
    """Return the components with the ids that Discord gives them."""
    return [
        {"id": next(ids), **one} | ({"components": _numbered(inner, ids)} if (inner := one.get("components")) else {})
        for one in components
    ]


def _fields(asked: ProviderRequest) -> Mapping[str, Any]:
    """Return the fields that Discord heeds: it ignores components unless the query asks for them."""
    fields = asked.fields or {}
    is_heeded = asked.query.get("with_components", "").lower() in ("true", "1")
    return fields if is_heeded else {name: value for name, value in fields.items() if name != "components"}


def _refusal(asked: ProviderRequest) -> int | None:
    if not asked.path["id"].isdigit():
        return 10015
    return 50027 if is_wrong(asked.path["token"]) else None


async def _about(request: Request) -> Response:
    asked = ProviderRequest(request.scope)
    refused = _refusal(asked)
    if refused is not None:
        return _error(refused)
    id_ = asked.path["id"]
    return SandboxJson({"id": id_, "type": 1, "name": "Sandbox", "channel_id": id_, "guild_id": "1", "avatar": None})


def _error(code: int) -> Response:
    status, message = ERRORS.get(code, (400, "Simulated error"))
    if status == 429:
        return _throttled(5.5, code=code)
    body: dict[str, object] = {"message": message, "code": code}
    if code == 50035:
        wrong = {"code": "BASE_TYPE_MAX_LENGTH", "message": f"Must be {MAX_TEXT} or fewer in length."}
        body["errors"] = {"content": {"_errors": [wrong]}}
    return SandboxJson(body, status_code=status)


def _throttled(wait: float, *, code: int | None = None) -> Response:
    """Return a 429; the body has fractional seconds, the header is rounded up."""
    body: dict[str, object] = {"message": "You are being rate limited.", "retry_after": wait, "global": False}
    if code is not None:
        body["code"] = code
    headers = {
        **_LIMITS,
        "retry-after": str(math.ceil(wait)),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset-after": f"{wait:.3f}",
        "x-ratelimit-scope": "user",
    }
    return SandboxJson(body, status_code=429, headers=headers)
