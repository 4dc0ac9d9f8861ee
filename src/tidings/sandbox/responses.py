"""What every pretend provider does with a connection: read a body, answer, answer late, or cut the line."""

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
PAGE = b"<!doctype html><html><title>Bad Gateway</title><body>Somebody in between answers.</body></html>"
HUGE = 10 * 1024 * 1024


class SandboxJson(Response):
    """A JSON answer by orjson."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return orjson.dumps(content)


def error_response(error: TidingsError, status: int | None = None) -> SandboxJson:
    """An error in the one envelope of the sandbox."""
    body = {"code": error.code, "message": str(error), "field": error.field}
    return SandboxJson({"error": body}, status_code=status or error.status)


async def read_body(receive: Receive, limit: int = MAX_BODY) -> bytes:
    """The whole body, or `TooLarge`, or `ClientDisconnect` when the client left in the middle of it."""
    body, more = b"", True
    while more and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > limit:
        raise TooLarge(f"The body is over {limit} bytes", remedy="Send less at once")
    return body


Command = Callable[[Request], Awaitable[Response]]


async def read_command(request: Request, example: str) -> Any:
    """The body as JSON, or `Invalid` with an example of what would do."""
    try:
        return orjson.loads(await read_body(request.receive))
    except orjson.JSONDecodeError:
        raise Invalid("The body is not JSON", remedy=example) from None


def with_error_response(command: Command) -> Command:
    """A command whose errors are told in the one envelope."""

    async def safe(request: Request) -> Response:
        try:
            return await command(request)
        except (CallerError, TemporaryError) as error:
            return error_response(error)

    return safe


def _page(kind: FaultKind) -> Response | None:
    """What comes instead of the provider's answer, if somebody in between answers."""
    if kind is FaultKind.HTML:
        return Response(PAGE, status_code=502, media_type="text/html")
    if kind is FaultKind.HUGE:
        return Response(PAGE.ljust(HUGE), status_code=500, media_type="text/html")
    return None


class FaultyResponse(Response):
    """For endpoints that give back their answer: one that does what the ledger says was done."""

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
    """Do to the connection what the ledger says was done."""
    if entry.did in CUTS:
        await cut_connection(receive)
        return
    if entry.did is FaultKind.SLOW:
        await environment.sleep(entry.wait)
    if entry.did is FaultKind.DRIP:
        send = _dripping(send, entry.wait, environment)
    await (_page(entry.did) or answer)(scope, receive, send)


def _dripping(send: Send, seconds: float, environment: SandboxEnvironment) -> Send:
    """The head at once, then the body byte by byte, all of it within so many seconds."""

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

    ASGI has no word for it, so this reaches for the server's transport behind `receive` (uvicorn's request
    cycle). Where there is none, the request stays unanswered until the client leaves: also true to
    "no answer came".
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass
