"""Call-backs of providers: they cannot show our key, so their signature is the key.

The body is read as raw bytes, because those are what was signed. Nothing of a refused request is logged or
repeated: it may be anybody's.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response

from ...access.permissions import OPEN, requires
from ...model.errors import Forbidden
from ...outbound.receipts.base import Callback
from ...outbound.service import OutboundService
from ...wire.webhook_signatures import BadSignature
from ..bodies import NOT_FOUND, WEBHOOK_ERROR_RESPONSES, response_content
from ..errors import MalformedBody, Unauthorized
from ..middleware import body_too_large

PATH = "/callbacks/{channel}"
LARGEST = 3 << 20  # Meta sends up to 3 MB at once


def routes(desk: OutboundService) -> APIRouter:
    """The address of each channel that is called back."""
    router = APIRouter(tags=["call-backs"], responses=NOT_FOUND | WEBHOOK_ERROR_RESPONSES)

    @router.get(PATH, response_class=Response, responses=response_content("text/plain"))
    @requires(OPEN)
    async def challenge(channel: str, request: Request) -> Response:
        """A provider asks whether this address is ours (WhatsApp Cloud)."""
        try:
            return PlainTextResponse(desk.callbacks.challenge(channel, request.query_params))
        except BadSignature as error:
            raise Forbidden(str(error), remedy="give the provider the verify_token of this channel") from None

    @router.post(PATH, response_class=Response)
    @requires(OPEN)
    async def take(channel: str, request: Request) -> Response:
        """A provider tells what became of messages, or what came in."""
        call = Callback(_target(request), dict(request.headers), await _body(request))
        try:
            await desk.callbacks.take(channel, call)
        except BadSignature as error:
            remedy = "give the provider the secret that this channel has, or this channel the provider's"
            raise Unauthorized(str(error), remedy=remedy) from None
        return Response(status_code=200)

    return router


def _target(request: Request) -> str:
    """Path and query as they came: decoding and encoding again would not give the same bytes."""
    path = bytes(request.scope.get("raw_path") or request.url.path.encode()).partition(b"?")[0]
    query = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST:
                raise body_too_large(LARGEST)
    except ClientDisconnect:
        raise MalformedBody("the call-back broke off", remedy="send it again") from None
    return bytes(body)
