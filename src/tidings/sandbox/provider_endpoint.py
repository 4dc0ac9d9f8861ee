"""The ASGI endpoint that all simulated providers share: parse a request, record it, answer it.

A provider supplies two functions: one parses a request into a `ProviderArrival`, the other builds the answer
from the ledger entry. Everything else, such as cut connections, is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tidings.model.errors import CallerError, TemporaryError

from .ledger import SandboxEntry, content_hash
from .responses import error_response, read_body, respond
from .simulator import ProviderArrival, SandboxSimulator

WRONG = "wrong"  # every provider rejects credentials that contain this word

_STATUS = re.compile(r"[45][0-9][0-9]")


class ProviderRequest(NamedTuple):
    """One request. `fields` are those of its JSON object or form; None if it is neither.

    `query` has the last value of each parameter, `lists` has all.
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    fields: Mapping[str, Any] | None
    lists: Mapping[str, Sequence[str]] = {}

    def text(self, name: str) -> str:
        """Return a text field, or an empty text."""
        found = (self.fields or {}).get(name)
        return found if isinstance(found, str) else ""

    def id(self, to: str, text: str, data: object = None) -> str:
        """Return the id of the message: the sender's request id, or a hash of its content."""
        given = self.headers.get("x-request-id") or self.headers.get("idempotency-key", "")
        return given[:256] or f"content-{content_hash(text, to, data)}"

    def arrival(
        self, channel: str, to: str, text: str, data: Any = None, problem: object = None, **more: Any
    ) -> ProviderArrival:
        """Return the arrival to be recorded."""
        wrong = None if problem is None else str(problem)
        id_ = self.id(to, text, data)
        return ProviderArrival(channel, id_, to, text, data=data, sender=self.sender, problem=wrong, **more)

    @property
    def sender(self) -> int | None:
        """The pid of the sending process, if it is in the headers."""
        pid = self.headers.get("x-sender-pid", "")
        return int(pid) if pid.isdigit() and len(pid) < 12 else None


Read = Callable[[ProviderRequest], ProviderArrival]
Answer = Callable[[ProviderRequest, ProviderArrival, SandboxEntry], Response]
Early = Callable[[ProviderRequest], Response | None]  # the answer to a request that is not recorded


class ProviderEndpoint:
    """A bare ASGI endpoint without middleware, because drills put load on it."""

    def __init__(self, world: SandboxSimulator, read: Read, answer: Answer, early: Early = lambda _asked: None) -> None:
        self._world, self._read, self._answer, self._early = world, read, answer, early

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            asked = request_of(scope, await read_body(receive))
            if (early := self._early(asked)) is not None:
                return await early(scope, receive, send)
            arrival = self._read(asked)
            entry = self._world.receive(arrival)
        except ClientDisconnect:
            return None  # an incomplete request is not recorded
        except (CallerError, TemporaryError) as error:
            return await error_response(error)(scope, receive, send)
        answer = self._answer(asked, arrival, entry)
        await respond(entry, answer, scope, receive, send, environment=self._world.environment)


def provider_route(world: SandboxSimulator, path: str, read: Read, answer: Answer, method: str = "POST") -> Route:
    """Return the route of a provider endpoint."""
    return Route(path, ProviderEndpoint(world, read, answer), methods=[method])


def request_of(scope: Scope, body: bytes = b"") -> ProviderRequest:
    """Parse a request."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return ProviderRequest(
        {name: str(value) for name, value in scope.get("path_params", {}).items()},
        {name: values[-1] for name, values in query.items()},
        headers,
        _fields(headers.get("content-type", ""), body),
        query,
    )


def http_status(code: str) -> int | None:
    """Return the HTTP status that a fault's code names; None if it is not a status."""
    return int(code) if _STATUS.fullmatch(code) else None


def is_wrong(*credentials: str) -> bool:
    """Return whether a credential is missing or contains the word for refusal."""
    return any(not credential or WRONG in credential.lower() for credential in credentials)


def _fields(kind: str, body: bytes) -> Mapping[str, Any] | None:
    if not kind.startswith("application/x-www-form-urlencoded"):
        return json_object(body)
    found: dict[str, Any] = {}
    form: Mapping[str, Sequence[str]] = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    for name, values in form.items():
        found[name] = values[0] if len(values) == 1 else values
    return found


def json_object(body: bytes | str) -> Mapping[str, Any] | None:
    """Parse a JSON object; None if the body is not one."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
