"""Simulated phone with Tidings' own wire format, the simplest provider.

`POST /sandbox/messages` takes one message and returns a receipt. It never removes duplicates, so that they
can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from starlette.responses import Response
from starlette.routing import BaseRoute

from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, provider_route, retry_after
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "phone"
MAX_NAME = 256

_MESSAGES = {
    FaultKind.ERROR: "The phone network has an error",
    FaultKind.THROTTLED: "Too many messages",
    FaultKind.GONE: "Unknown recipient",
}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the phone's one route."""
    return [provider_route(world, "/sandbox/messages", ProviderMethod(read, _answer, _error))]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a message. An invalid one has a `problem` and is recorded too."""
    try:
        fields = orjson.loads(asked.body)
    except orjson.JSONDecodeError:
        return ProviderArrival(CHANNEL, "", "", sender=asked.sender, problem="The body is not JSON")
    if not isinstance(fields, dict):
        return ProviderArrival(CHANNEL, "", "", sender=asked.sender, problem="The body is not a JSON object")
    problem = _problem(fields)
    if problem is not None:
        id, to = (str(fields.get(name) or "")[:MAX_NAME] for name in ("id", "to"))
        return ProviderArrival(CHANNEL, id, to.strip(), sender=asked.sender, problem=problem)
    return ProviderArrival(
        CHANNEL,
        id=fields["id"],
        to=fields["to"].strip(),
        text=fields.get("text") or "",
        subject=fields.get("subject") or "",
        data=fields.get("data"),
        attempt=fields.get("attempt"),
        sender=asked.sender,
    )


def _problem(fields: Mapping[str, object]) -> str | None:
    id, to, attempt = fields.get("id"), fields.get("to"), fields.get("attempt")
    if not isinstance(id, str) or not 1 <= len(id) <= MAX_NAME:
        return f"id must be a text of 1 to {MAX_NAME} characters"
    if not isinstance(to, str) or not to.strip() or len(to) > MAX_NAME:
        return f"to must name a recipient, in at most {MAX_NAME} characters"
    for name in ("text", "subject"):
        if not isinstance(fields.get(name), str | None):
            return f"{name} must be a text"
    if attempt is not None and (type(attempt) is not int or attempt < 1):
        return "attempt must be an integer from 1"
    return None


def _answer(_asked: ProviderRequest, _arrival: ProviderArrival, entry: SandboxEntry) -> Response:
    return SandboxJson({"receipt": f"{CHANNEL}-{entry.n}"})


def _error(_: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    if entry.did is FaultKind.INVALID:
        return SandboxJson({"error": {"code": "invalid", "message": code}}, status_code=400)
    body = {"code": code, "message": _MESSAGES.get(entry.did, "Simulated error")}
    return SandboxJson({"error": body}, status_code=http_status(code) or 400, headers=retry_after(entry))
