"""Delivery callbacks of providers, authenticated by their signature instead of an API key.

The signature covers the raw bytes of the body. Content of a rejected request is never logged or echoed.
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
from ..body_limits import body_too_large
from ..errors import MalformedBody, Unauthorized
from ..openapi_responses import NOT_FOUND, WEBHOOK_ERROR_RESPONSES, response_content

PATH = "/callbacks/{channel}"
MAX_BODY = 3 << 20  # Meta sends up to 3 MB


def routes(outbound: OutboundService) -> APIRouter:
    """Return the callback routes of all channels."""
    router = APIRouter(tags=["callbacks"], responses=NOT_FOUND | WEBHOOK_ERROR_RESPONSES)

    @router.get(PATH, response_class=Response, responses=response_content("text/plain"))
    @requires(OPEN)
    async def challenge(channel: str, request: Request) -> Response:
        """Answer the verification challenge of a provider (WhatsApp Cloud)."""
        try:
            return PlainTextResponse(outbound.callbacks.challenge(channel, request.query_params))
        except BadSignature as error:
            raise Forbidden(str(error), remedy="set the channel's verify_token at the provider") from None

    @router.post(PATH, response_class=Response)
    @requires(OPEN)
    async def receive(channel: str, request: Request) -> Response:
        """Receive delivery receipts and inbound messages from a provider."""
        call = Callback(_target(request), dict(request.headers), await _body(request))
        try:
            await outbound.callbacks.take(channel, call)
        except BadSignature as error:
            remedy = "configure the same secret at the provider and in this channel"
            raise Unauthorized(str(error), remedy=remedy) from None
        return Response(status_code=200)

    return router


def _target(request: Request) -> str:
    """Return path and query as received; decoding and encoding them could change the signed bytes."""
    path = bytes(request.scope.get("raw_path") or request.url.path.encode()).partition(b"?")[0]
    query = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise body_too_large(MAX_BODY)
    except ClientDisconnect:
        raise MalformedBody("the callback was interrupted", remedy="send it again") from None
    return bytes(body)
