"""The pretend phone: the plainest provider, with a wire format of our own.

`POST /sandbox/messages` takes one message and gives back a receipt. It never removes duplicates: showing
them is what it is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from tidings.model.errors import CallerError, Temporary
from tidings.sandbox.faults import Kind
from tidings.sandbox.ledger import Entry
from tidings.sandbox.wire import JSON, act, error_answer, read_body
from tidings.sandbox.world import Arrival, World

CHANNEL = "phone"
MAX_NAME = 256

_ERRORS: dict[Kind, tuple[int, str]] = {
    Kind.ERROR: (500, "The phone network has an error"),
    Kind.THROTTLED: (429, "Too many messages, wait"),
    Kind.GONE: (404, "There is no such recipient"),
}


def routes(world: World) -> Sequence[BaseRoute]:
    """The phone's one route."""
    return [Route("/sandbox/messages", _Messages(world), methods=["POST"])]


class _Messages:
    """A bare ASGI endpoint: this route takes the load of the drills, so nothing stands before it."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            arrival = parse(await read_body(receive), sender=_sender(scope))
            entry = self._world.receive(arrival)
        except ClientDisconnect:
            return  # half a request never arrived
        except (CallerError, Temporary) as error:
            await error_answer(error)(scope, receive, send)
            return
        answer = _answer(entry, arrival)
        await act(entry, answer, scope, receive, send, senses=self._world.senses)


def parse(body: bytes, *, sender: int | None) -> Arrival:
    """The message in a body. What is wrong with it is in `problem`: a bad request is in the ledger, too."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Arrival(CHANNEL, "", "", sender=sender, problem="The body is not JSON")
    if not isinstance(fields, dict):
        return Arrival(CHANNEL, "", "", sender=sender, problem="The body is not a JSON object")
    problem = _problem(fields)
    if problem is not None:
        id, to = (str(fields.get(name) or "")[:MAX_NAME] for name in ("id", "to"))
        return Arrival(CHANNEL, id, to.strip(), sender=sender, problem=problem)
    return Arrival(
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
        return "attempt must be a whole number from 1"
    return None


def _sender(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"x-sender-pid":
            return int(value) if value.isdigit() and len(value) < 12 else None
    return None


def _answer(entry: Entry, arrival: Arrival) -> Response:
    if entry.did is Kind.INVALID:
        return JSON({"error": {"code": "invalid", "message": arrival.problem}}, status_code=400)
    if entry.did is Kind.REFUSED:
        status = int(entry.code) if re.fullmatch("[45][0-9][0-9]", entry.code) else 400
        body = {"code": entry.code, "message": "The phone was told to answer with this"}
        return JSON({"error": body}, status_code=status)
    if entry.did not in _ERRORS:
        return JSON({"receipt": f"{CHANNEL}-{entry.n}"})
    status, message = _ERRORS[entry.did]
    headers = {"retry-after": f"{entry.wait:g}"} if entry.did is Kind.THROTTLED else None
    return JSON({"error": {"code": entry.did.value, "message": message}}, status_code=status, headers=headers)
