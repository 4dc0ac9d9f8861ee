"""A route of a pretend provider: reads a request, has it written down, answers in the provider's own words.

Providers differ in two functions: one makes a `ProviderArrival` of a request, the other an answer from the
ledger's result. Everything else, the cut lines among it, is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidings.model.errors import CallerError, TemporaryError

from .ledger import SandboxEntry, content_hash
from .responses import error_response, read_body, respond
from .simulator import ProviderArrival, SandboxSimulator

WRONG = "wrong"  # a credential that has this word in it is refused by every provider

_STATUS = re.compile(r"[45][0-9][0-9]")


class ProviderRequest(NamedTuple):
    """One request. `fields` are those of its JSON object or of its form; None when it is neither."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    fields: Mapping[str, Any] | None

    def text(self, name: str) -> str:
        """A field that is a text, or nothing."""
        found = (self.fields or {}).get(name)
        return found if isinstance(found, str) else ""

    def id(self, to: str, text: str, data: object = None) -> str:
        """The message's name: the request's own where the sender gave one, else what makes it the same."""
        return self.headers.get("x-request-id", "")[:256] or f"content-{content_hash(text, to, data)}"

    def arrival(
        self, channel: str, to: str, text: str, data: Any = None, problem: object = None, **more: Any
    ) -> ProviderArrival:
        """What is written down of it."""
        wrong = None if problem is None else str(problem)
        id_ = self.id(to, text, data)
        return ProviderArrival(channel, id_, to, text, data=data, sender=self.sender, problem=wrong, **more)

    @property
    def sender(self) -> int | None:
        """The process that sent it, where it says so."""
        pid = self.headers.get("x-sender-pid", "")
        return int(pid) if pid.isdigit() and len(pid) < 12 else None


Read = Callable[[ProviderRequest], ProviderArrival]
Answer = Callable[[ProviderRequest, ProviderArrival, SandboxEntry], Response]


class ProviderEndpoint:
    """A bare ASGI endpoint: drills put load on it, so nothing stands before it."""

    def __init__(self, world: SandboxSimulator, read: Read, answer: Answer) -> None:
        self._world = world
        self._read = read
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            asked = request_of(scope, await read_body(receive))
            arrival = self._read(asked)
            entry = self._world.receive(arrival)
        except ClientDisconnect:
            return  # half a request never arrived
        except (CallerError, TemporaryError) as error:
            await error_response(error)(scope, receive, send)
            return
        answer = self._answer(asked, arrival, entry)
        await respond(entry, answer, scope, receive, send, environment=self._world.environment)


def request_of(scope: Scope, body: bytes = b"") -> ProviderRequest:
    """A request, taken apart."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return ProviderRequest(
        {name: str(value) for name, value in scope.get("path_params", {}).items()},
        {name: values[-1] for name, values in query.items()},
        headers,
        _fields(headers.get("content-type", ""), body),
    )


def http_status(code: str) -> int | None:
    """The HTTP status that a fault asks for by its number, if it is one."""
    return int(code) if _STATUS.fullmatch(code) else None


def is_wrong(*credentials: str) -> bool:
    """Whether a credential is missing, or made to be refused."""
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
    """The JSON object in a body or a text; None when it holds none."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
