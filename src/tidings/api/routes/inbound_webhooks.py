"""Webhooks of inbound sources, authenticated by their signature instead of an API key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ...access.permissions import OPEN, requires
from ...inbound.ingestion import IngestionFailed
from ...inbound.service import InboundService
from ...inbound.sources.port import UnverifiedWebhook, WebhookRequest
from ...model.errors import StoreUnavailable
from ..bodies import json_response
from ..errors import MalformedBody, Unauthorized
from ..openapi_responses import NOT_FOUND, WEBHOOK_ERROR_RESPONSES

PATH = "/inbound/{source}"


def routes(inbound: InboundService) -> APIRouter:
    """Return the webhook routes of all sources."""
    router = APIRouter(tags=["callbacks"], responses=NOT_FOUND | WEBHOOK_ERROR_RESPONSES)

    @router.post(PATH)
    @requires(OPEN)
    async def receive(source: str, request: Request) -> Response:
        """Receive inbound messages. Answered when they are durable; duplicates are ignored."""
        try:
            call = WebhookRequest(dict(request.headers), dict(request.query_params), await request.body())
            result = await inbound.listening.call(source, call)
        except ClientDisconnect:
            raise MalformedBody("the request was interrupted", remedy="send it again") from None
        except UnverifiedWebhook as error:
            remedy = "sign the request, or put the key into the URL, with the secret of this source"
            raise Unauthorized(str(error), remedy=remedy) from None
        except IngestionFailed as error:
            raise StoreUnavailable(str(error), remedy="send it again; nothing is lost") from None
        return json_response({"taken": result.handled + result.ended, "known": result.known})

    return router
