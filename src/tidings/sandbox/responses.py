"""Reads request bodies; answers, delays or cuts a connection as the fault says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from tidings.model.errors import CallerError, Invalid, TemporaryError, TidingsError, TooLarge

from .environment import SandboxEnvironment
from .faults import CUTS, FaultKind
from .ledger import SandboxEntry

MAX_BODY = 1024 * 1024
PAGE = b"<!doctype html><html><title>Bad Gateway</title><body>Answer of a proxy.</body></html>"
HUGE = 10 * 1024 * 1024


class SandboxJson(Response):
    """A JSON response encoded by orjson."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return orjson.dumps(content)


def error_response(error: TidingsError, status: int | None = None) -> SandboxJson:
    """Return an error in the sandbox's envelope."""
    body = {"code": error.code, "message": str(error), "field": error.field}
    return SandboxJson({"error": body}, status_code=status or error.status)


async def read_body(receive: Receive, limit: int = MAX_BODY) -> bytes:
    """Read the whole body; raises TooLarge, or ClientDisconnect if the client left."""
    body, more = bytearray(), True
    while more and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > limit:
        raise TooLarge(f"The body exceeds {limit} bytes", remedy="Send less at once")
    return bytes(body)


Command = Callable[[Request], Awaitable[Response]]


async def read_command(request: Request, example: str) -> Any:
    """Parse the body as JSON; raises Invalid with an example."""
    try:
        return orjson.loads(await read_body(request.receive))
    except orjson.JSONDecodeError:
        raise Invalid("The body is not JSON", remedy=example) from None


def with_error_response(command: Command) -> Command:
    """Wrap a command so that its errors are answered in the envelope."""

    async def safe(request: Request) -> Response:
        try:
            return await command(request)
        except (CallerError, TemporaryError) as error:
            return error_response(error)

    return safe


def _page(kind: FaultKind) -> Response | None:
    """Return the page of a simulated proxy, if the fault is one."""
    if kind is FaultKind.HTML:
        return Response(PAGE, status_code=502, media_type="text/html")
    if kind is FaultKind.HUGE:
        return Response(PAGE.ljust(HUGE), status_code=500, media_type="text/html")
    return None


class FaultyResponse(Response):
    """A response that behaves as the ledger entry says, for endpoints that return it."""

    def __init__(self, entry: SandboxEntry, answer: Response, environment: SandboxEnvironment) -> None:
        super().__init__()
        self._entry, self._answer, self._environment = entry, answer, environment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(self._entry, self._answer, scope, receive, send, environment=self._environment)


async def respond(
    entry: SandboxEntry,
    answer: Response,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    environment: SandboxEnvironment,
) -> None:
    """Answer, delay or cut the connection as the ledger entry says."""
    if entry.did in CUTS:
        await cut_connection(receive)
        return
    if entry.did is FaultKind.SLOW:
        await environment.sleep(entry.wait)
    if entry.did is FaultKind.DRIP:
        send = _dripping(send, entry.wait, environment)
    await (_page(entry.did) or answer)(scope, receive, send)


def _dripping(send: Send, seconds: float, environment: SandboxEnvironment) -> Send:
    """Send the headers at once, then the body byte by byte over the given seconds."""

    async def drip(message: Message) -> None:
        body = message.get("body", b"")
        if message["type"] != "http.response.body" or not body:
            return await send(message)
        for byte in body:
            await send({**message, "body": bytes([byte]), "more_body": True})
            await environment.sleep(seconds / len(body))
        return await send({**message, "body": b""})

    return drip


async def cut_connection(receive: Receive) -> None:
    """Close the connection without an answer.

    ASGI has no means for it, so this uses the server's transport behind `receive` (uvicorn's request cycle).
    Without one the request stays unanswered until the client leaves, which has the same effect.
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass
