"""The ASGI endpoint that all simulated providers share: parse a request, record it, answer it.

A provider supplies three functions: one parses a request into a `ProviderArrival`, one builds the answer from
the ledger entry, and one the provider's error with a code. Everything else, such as cut connections, is here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from email import message_from_bytes
from email.policy import HTTP
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tidings.model.errors import CallerError, TemporaryError

from .faults import FaultKind
from .ledger import SandboxEntry, content_hash
from .responses import MAX_BODY, error_response, read_body, respond
from .simulator import ProviderArrival, SandboxSimulator

WRONG = "wrong"  # every provider rejects credentials that contain this word
STATUS_FAULTS = {FaultKind.ERROR: "500", FaultKind.THROTTLED: "429", FaultKind.GONE: "404"}

_STATUS = re.compile(r"[45][0-9][0-9]")


class ProviderRequest:
    """One request. Its parts are parsed when they are first used."""

    def __init__(self, scope: Scope, body: bytes = b"") -> None:
        self._scope, self.body = scope, body
        self.raw_query: str = scope.get("query_string", b"").decode("latin-1")

    @cached_property
    def path(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return {name: str(value) for name, value in self._scope.get("path_params", {}).items()}

    @cached_property
    def query(self) -> QueryParams:
        """The last value of each parameter; `getlist` has all."""
        return QueryParams(self.raw_query)

    @cached_property
    def headers(self) -> Headers:
        """The headers."""
        return Headers(scope=self._scope)

    @cached_property
    def fields(self) -> Mapping[str, Any] | None:
        """The fields of the JSON object or the form; None if the body is neither. Of a file, what is known about it."""
        if self.headers.get("content-type", "").startswith("multipart/form-data"):
            return _multipart_fields(self.headers["content-type"], self.body)
        if not self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return json_object(self.body)
        form: Mapping[str, Sequence[str]] = parse_qs(self.body.decode(errors="replace"), keep_blank_values=True)
        return {name: values[0] if len(values) == 1 else values for name, values in form.items()}

    def text(self, name: str) -> str:
        """Return a text field, or an empty text."""
        found = (self.fields or {}).get(name)
        return found if isinstance(found, str) else ""

    def without(self, *names: str) -> dict[str, Any]:
        """Return the fields except these."""
        return {name: value for name, value in (self.fields or {}).items() if name not in names}

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


class ProviderMethod(NamedTuple):
    """How a provider reads a request, and how it answers: a delivered one, or one with an error.

    The code of an error is the `problem` of an invalid request, the code of a fault, or in `faults`. `early`
    answers a request that is not recorded.
    """

    read: Callable[[ProviderRequest], ProviderArrival]
    answer: Callable[[ProviderRequest, ProviderArrival, SandboxEntry], Response]
    error: Callable[[ProviderRequest, SandboxEntry, str], Response]
    faults: Mapping[FaultKind, str] = STATUS_FAULTS
    early: Callable[[ProviderRequest], Response | None] = lambda _asked: None
    max_body: int = MAX_BODY

    def respond(self, asked: ProviderRequest, arrival: ProviderArrival, entry: SandboxEntry) -> Response:
        """Return the answer to a recorded request; an empty one if it is not sent."""
        code = entry.code if entry.did is FaultKind.REFUSED else self.faults.get(entry.did)
        code = arrival.problem if arrival.problem is not None else code
        if code is not None:
            return self.error(asked, entry, code)
        return self.answer(asked, arrival, entry) if entry.delivered else Response()


class ProviderEndpoint:
    """A bare ASGI endpoint without middleware, because drills put load on it."""

    def __init__(self, world: SandboxSimulator, method: ProviderMethod) -> None:
        self._world, self._method = world, method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            asked = ProviderRequest(scope, await read_body(receive, self._method.max_body))
            if (early := self._method.early(asked)) is not None:
                return await early(scope, receive, send)
            arrival = self._method.read(asked)
            entry = self._world.receive(arrival)
        except ClientDisconnect:
            return None  # an incomplete request is not recorded
        except (CallerError, TemporaryError) as error:
            return await error_response(error)(scope, receive, send)
        answer = self._method.respond(asked, arrival, entry)
        await respond(entry, answer, scope, receive, send, environment=self._world.environment)


def provider_route(world: SandboxSimulator, path: str, method: ProviderMethod, verb: str = "POST") -> Route:
    """Return the route of a provider endpoint."""
    return Route(path, ProviderEndpoint(world, method), methods=[verb])


def http_status(code: str) -> int | None:
    """Return the HTTP status that a fault's code names; None if it is not a status."""
    return int(code) if _STATUS.fullmatch(code) else None


def retry_after(entry: SandboxEntry) -> dict[str, str]:
    """Return the header of an answer to a throttled request; none for others."""
    return {"retry-after": f"{entry.wait:g}"} if entry.did is FaultKind.THROTTLED else {}


def is_wrong(*credentials: str) -> bool:
    """Return whether a credential is missing or contains the word for refusal."""
    return any(not credential or WRONG in credential.lower() for credential in credentials)


def _multipart_fields(content_type: str, body: bytes) -> dict[str, Any]:
    found = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body, policy=HTTP)
    fields: dict[str, Any] = {}
    for part in found.iter_parts():
        name, held = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        assert isinstance(held, bytes)
        if (file := part.get_filename()) is None:
            fields[str(name)] = held.decode()
        else:
            about = {"name": file, "content_type": part.get_content_type(), "size": len(held)}
            fields[str(name)] = {**about, "sha256": hashlib.sha256(held).hexdigest()}
    return fields


def json_object(body: bytes | str) -> Mapping[str, Any] | None:
    """Parse a JSON object; None if the body is not one."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
