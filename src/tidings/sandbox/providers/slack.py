"""Simulated Slack: `chat.postMessage`, `auth.test`, and incoming webhooks.

As with Slack, the Web API answers nearly everything with 200 and the error in the body; a webhook answers
with plain text. A channel may be named like a fault, such as `#flaky-3` or `#error-is_archived`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import (
    ProviderMethod,
    ProviderRequest,
    http_status,
    is_wrong,
    json_object,
    provider_route,
)
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "slack"
MAX_TEXT = 40_000
MAX_BLOCKS = 13_200  # characters, as reported in slackapi/bolt-js 2509

HOOK_ERRORS: Mapping[str, int] = {
    "invalid_payload": 400,
    "user_not_found": 400,
    "no_text": 400,
    "too_many_attachments": 400,
    "invalid_blocks": 400,
    "action_prohibited": 403,
    "invalid_token": 403,
    "posting_to_general_channel_denied": 403,
    "team_disabled": 403,
    "channel_not_found": 404,
    "no_service": 404,
    "no_service_id": 404,
    "no_team": 404,
    "channel_is_archived": 410,
    "rollup_error": 500,
}

_FAULTS = {FaultKind.ERROR: "500", FaultKind.THROTTLED: "ratelimited", FaultKind.GONE: "channel_not_found"}
_HOOK_FAULTS = {**_FAULTS, FaultKind.ERROR: "rollup_error"}
_HOOKS_OWN = {"account_inactive": "team_disabled", "token_revoked": "invalid_token"}
_BOT = {"user": "sandbox", "team": "Sandbox", "team_id": "T1", "user_id": "U1", "bot_id": "B1"}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes of the Web API and the webhooks."""
    hook = ProviderMethod(read_hook, lambda *_: PlainTextResponse("ok"), _hook_error, _HOOK_FAULTS)
    return [
        provider_route(world, "/api/chat.postMessage", ProviderMethod(read, answer, _error, _FAULTS)),
        Route("/api/auth.test", _auth_test, methods=["POST", "GET"]),
        provider_route(world, "/services/{team}/{service}/{secret}", hook),
    ]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message; `problem` is Slack's error name, if it is invalid."""
    to = asked.text("channel").removeprefix("#").strip()
    text = asked.text("text")[:MAX_TEXT]
    data = asked.without("channel", "text", "token")
    return asked.arrival(CHANNEL, to, text, data, _problem(asked, to, text))


def answer(asked: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    """Return the answer of the Web API."""
    ts = f"{entry.at // 1_000_000}.{entry.n:06d}"
    said = {"text": arrival.text, "type": "message", "subtype": "bot_message", "ts": ts, "bot_id": "B1"}
    return SandboxJson({"ok": True, "channel": asked.text("channel"), "ts": ts, "message": said})


def read_hook(asked: ProviderRequest) -> ProviderArrival:
    """Parse a webhook request, as JSON or as a form with a `payload`."""
    payload = (asked.fields or {}).get("payload")
    if isinstance(payload, str):
        asked.fields = json_object(payload)
    to = f"{asked.path['team']}/{asked.path['service']}"
    text, data = asked.text("text"), asked.without("text")
    problem = None
    if is_wrong(asked.path["secret"]):
        problem = "invalid_token"
    elif asked.fields is None:
        problem = "invalid_payload"
    elif not text and not data.get("blocks") and not data.get("attachments"):
        problem = "no_text"
    return asked.arrival(CHANNEL, to, text, data, problem)


def _error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    if (status := http_status(code)) is not None:
        words = "Internal Server Error" if entry.did is FaultKind.ERROR else ""
        return PlainTextResponse(words, status_code=status)
    return _failed(code, entry.wait or 30)


def _hook_error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    if entry.did is FaultKind.THROTTLED:
        headers = {"retry-after": str(math.ceil(entry.wait))}
        return PlainTextResponse("rate_limited", status_code=429, headers=headers)
    word = _HOOKS_OWN.get(code, code)
    return PlainTextResponse(word, status_code=http_status(word) or HOOK_ERRORS.get(word, 400))


async def _auth_test(request: Request) -> Response:
    refused = _refusal(_token(ProviderRequest(request.scope)))
    return _failed(refused) if refused else SandboxJson({"ok": True, "url": "http://sandbox/", **_BOT})


def _problem(asked: ProviderRequest, to: str, text: str) -> str | None:
    refused = _refusal(_token(asked))
    if refused is not None:
        return refused
    if asked.fields is None:
        return "invalid_form_data"
    if not to:
        return "channel_not_found"
    if not text and not asked.fields.get("blocks") and not asked.fields.get("attachments"):
        return "no_text"
    if len(orjson.dumps(asked.fields.get("blocks"))) > MAX_BLOCKS:
        return "msg_blocks_too_long"
    return None


def _token(asked: ProviderRequest) -> str:
    return asked.headers.get("authorization", "").removeprefix("Bearer ") or asked.text("token")


def _refusal(token: str) -> str | None:
    if not token:
        return "not_authed"
    return "invalid_auth" if is_wrong(token) or not token.startswith("xox") else None


def _failed(error: str, wait: float = 0) -> Response:
    if error in ("ratelimited", "rate_limited"):
        headers = {"retry-after": str(math.ceil(wait))}
        return SandboxJson({"ok": False, "error": "ratelimited"}, status_code=429, headers=headers)
    extra = {"needed": "chat:write", "provided": "identify"} if error == "missing_scope" else {}
    return SandboxJson({"ok": False, "error": error, **extra})
