"""The inbox: inbound messages and sources."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.service import InboundService
from ..bodies import json_response, page_response, read_fields
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND
from ..query_parameters import STRICT_QUERY, After, State


def routes(inbound: InboundService) -> APIRouter:
    """Return the routes under /v1/inbox and /v1/sources."""
    router = APIRouter(tags=["inbox"], responses=ERROR_RESPONSES)

    @router.get("/v1/inbox", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: State = None,
        source: Annotated[str | None, Query(description="Filter by source.")] = None,
        conversation: Annotated[str | None, Query(description="Filter by conversation.")] = None,
        sender: Annotated[str | None, Query(description="Filter by the platform's id of the sender.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List inbound messages, newest first. A page can be short; only `next: null` marks the end."""
        return page_response(
            await inbound.inbox.page(
                state=state, source=source, conversation=conversation, sender=sender, limit=limit, after=after
            )
        )

    @router.get("/v1/inbox/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one inbound message with its history and original payload."""
        return json_response(await inbound.inbox.show(id))

    @router.post("/v1/inbox/{id}/retry", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Retry a failed inbound message."""
        await read_fields(request, {})
        return json_response(await inbound.inbox.retry(id))

    @router.get("/v1/sources", dependencies=STRICT_QUERY)
    @requires(READ)
    async def sources() -> Response:
        """List sources with their position and last error."""
        return json_response({"items": await inbound.inbox.sources(), "next": None})

    return router
