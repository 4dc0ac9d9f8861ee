"""Simulated phone with Tidings' own wire format, the simplest provider.

`POST /sandbox/messages` takes one message and returns a receipt. It never removes duplicates, so that they
can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from tidings.model.errors import CallerError, TemporaryError
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.responses import SandboxJson, error_response, read_body, respond
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "phone"
MAX_NAME = 256

_ERRORS: dict[FaultKind, tuple[int, str]] = {
    FaultKind.ERROR: (500, "The phone network has an error"),
    FaultKind.THROTTLED: (429, "Too many messages"),
    FaultKind.GONE: (404, "Unknown recipient"),
}


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the phone's one route."""
    return [Route("/sandbox/messages", _PhoneEndpoint(world), methods=["POST"])]


class _PhoneEndpoint:
    """A bare ASGI endpoint without middleware, because drills put load on it."""

    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            arrival = parse(await read_body(receive), sender=_sender(scope))
            entry = self._world.receive(arrival)
        except ClientDisconnect:
            return  # an incomplete request is not recorded
        except (CallerError, TemporaryError) as error:
            await error_response(error)(scope, receive, send)
            return
        answer = _answer(entry, arrival)
        await respond(entry, answer, scope, receive, send, environment=self._world.environment)


def parse(body: bytes, *, sender: int | None) -> ProviderArrival:
    """Parse a message. An invalid one has a `problem` and is recorded too."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ProviderArrival(CHANNEL, "", "", sender=sender, problem="The body is not JSON")
    if not isinstance(fields, dict):
        return ProviderArrival(CHANNEL, "", "", sender=sender, problem="The body is not a JSON object")
    problem = _problem(fields)
    if problem is not None:
        id, to = (str(fields.get(name) or "")[:MAX_NAME] for name in ("id", "to"))
        return ProviderArrival(CHANNEL, id, to.strip(), sender=sender, problem=problem)
    return ProviderArrival(
        CHANNEL,
        id=fields["id"],
        to=fields["to"].strip(),
        text=fields.get("text") or "",
        subject=fields.get("subject") or "",
        data=fields.get("data"),
        attempt=fields.get("attempt"),
        sender=sender,
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


def _sender(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"x-sender-pid":
            return int(value) if value.isdigit() and len(value) < 12 else None
    return None


def _answer(entry: SandboxEntry, arrival: ProviderArrival) -> Response:
    if entry.did is FaultKind.INVALID:
        return SandboxJson({"error": {"code": "invalid", "message": arrival.problem}}, status_code=400)
    if entry.did is FaultKind.REFUSED:
        status = int(entry.code) if re.fullmatch("[45][0-9][0-9]", entry.code) else 400
        body = {"code": entry.code, "message": "Simulated error"}
        return SandboxJson({"error": body}, status_code=status)
    if entry.did not in _ERRORS:
        return SandboxJson({"receipt": f"{CHANNEL}-{entry.n}"})
    status, message = _ERRORS[entry.did]
    headers = {"retry-after": f"{entry.wait:g}"} if entry.did is FaultKind.THROTTLED else None
    return SandboxJson({"error": {"code": entry.did.value, "message": message}}, status_code=status, headers=headers)
