"""Where platforms call with what was said: they cannot show our key, so their signature is the key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ...access.permissions import OPEN, requires
from ...inbound.ingestion import IngestionFailed
from ...inbound.service import InboundService
from ...inbound.sources.port import UnverifiedWebhook, WebhookRequest
from ...model.errors import StoreUnavailable
from ..bodies import NOT_FOUND, WEBHOOK_ERROR_RESPONSES, json_response
from ..errors import MalformedBody, Unauthorized

PATH = "/inbound/{source}"


def routes(desk: InboundService) -> APIRouter:
    """The address of each source that is called."""
    router = APIRouter(tags=["call-backs"], responses=NOT_FOUND | WEBHOOK_ERROR_RESPONSES)

    @router.post(PATH)
    @requires(OPEN)
    async def take(source: str, request: Request) -> Response:
        """Something was said. Answered when it is durable; the same once more changes nothing."""
        try:
            call = WebhookRequest(dict(request.headers), dict(request.query_params), await request.body())
            taken = await desk.webhooks.call(source, call)
        except ClientDisconnect:
            raise MalformedBody("the request broke off", remedy="send it again") from None
        except UnverifiedWebhook as error:
            remedy = "sign it, or give the address its key, with the secret of this source"
            raise Unauthorized(str(error), remedy=remedy) from None
        except IngestionFailed as error:
            raise StoreUnavailable(str(error), remedy="send it again; nothing is lost") from None
        return json_response({"taken": taken.handled + taken.ended, "known": taken.known})

    return router
