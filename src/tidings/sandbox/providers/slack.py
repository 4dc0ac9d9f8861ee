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
    ProviderRequest,
    http_status,
    is_wrong,
    json_object,
    provider_route,
    request_of,
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

_HOOKS_OWN = {"account_inactive": "team_disabled", "token_revoked": "invalid_token"}
_BOT = {"user": "sandbox", "team": "Sandbox", "team_id": "T1", "user_id": "U1", "bot_id": "B1"}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the routes of the Web API and the webhooks."""
    return [
        provider_route(world, "/api/chat.postMessage", read, answer),
        Route("/api/auth.test", _auth_test, methods=["POST", "GET"]),
        provider_route(world, "/services/{team}/{service}/{secret}", read_hook, answer_hook),
    ]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message; `problem` is Slack's error name, if it is invalid."""
    to = asked.text("channel").removeprefix("#").strip()
    text = asked.text("text")[:MAX_TEXT]
    data = _rest(asked, "channel", "text", "token")
    return asked.arrival(CHANNEL, to, text, data, _problem(asked, to, text))


def answer(asked: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    """Return the answer of the Web API."""
    if entry.did is FaultKind.INVALID:
        return _failed(arrival.problem or "invalid_arguments")
    if entry.did is FaultKind.THROTTLED:
        return _throttled(entry.wait)
    if entry.did is FaultKind.ERROR:
        return PlainTextResponse("Internal Server Error", status_code=500)
    if entry.did is FaultKind.GONE:
        return _failed("channel_not_found")
    if entry.did is FaultKind.REFUSED:
        status = http_status(entry.code)
        return _failed(entry.code) if status is None else PlainTextResponse("", status_code=status)
    ts = f"{entry.at // 1_000_000}.{entry.n:06d}"
    said = {"text": arrival.text, "type": "message", "subtype": "bot_message", "ts": ts, "bot_id": "B1"}
    return SandboxJson({"ok": True, "channel": asked.text("channel"), "ts": ts, "message": said})


def read_hook(asked: ProviderRequest) -> ProviderArrival:
    """Parse a webhook request, as JSON or as a form with a `payload`."""
    payload = (asked.fields or {}).get("payload")
    if isinstance(payload, str):
        asked = asked._replace(fields=json_object(payload))
    to = f"{asked.path['team']}/{asked.path['service']}"
    text, data = asked.text("text"), _rest(asked, "text")
    problem = None
    if is_wrong(asked.path["secret"]):
        problem = "invalid_token"
    elif asked.fields is None:
        problem = "invalid_payload"
    elif not text and not data.get("blocks") and not data.get("attachments"):
        problem = "no_text"
    return asked.arrival(CHANNEL, to, text, data, problem)


def answer_hook(_: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    """Return the answer of a webhook, as plain text."""
    if entry.did is FaultKind.THROTTLED:
        headers = {"retry-after": str(math.ceil(entry.wait))}
        return PlainTextResponse("rate_limited", status_code=429, headers=headers)
    word = {
        FaultKind.INVALID: arrival.problem or "invalid_payload",
        FaultKind.ERROR: "rollup_error",
        FaultKind.GONE: "channel_not_found",
        FaultKind.REFUSED: entry.code,
    }.get(entry.did)
    if word is None:
        return PlainTextResponse("ok")
    word = _HOOKS_OWN.get(word, word)
    return PlainTextResponse(word, status_code=http_status(word) or HOOK_ERRORS.get(word, 400))


async def _auth_test(request: Request) -> Response:
    asked = request_of(request.scope)
    refused = _refusal(_token(asked))
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


def _failed(error: str) -> Response:
    if error in ("ratelimited", "rate_limited"):
        return _throttled(30)
    extra = {"needed": "chat:write", "provided": "identify"} if error == "missing_scope" else {}
    return SandboxJson({"ok": False, "error": error, **extra})


def _throttled(wait: float) -> Response:
    headers = {"retry-after": str(math.ceil(wait))}
    return SandboxJson({"ok": False, "error": "ratelimited"}, status_code=429, headers=headers)


def _rest(asked: ProviderRequest, *known: str) -> dict[str, object]:
    return {name: value for name, value in (asked.fields or {}).items() if name not in known}
