"""The inbox: what came in, and how far each source was read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.service import InboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, json_response, read_fields
from ..query_parameters import STRICT_QUERY, After


def routes(desk: InboundService) -> APIRouter:
    """Everything under /v1/inbox and /v1/sources."""
    router = APIRouter(tags=["inbox"], responses=ERROR_RESPONSES)

    @router.get("/v1/inbox", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="only in this state")] = None,
        source: Annotated[str | None, Query(description="only of this source")] = None,
        conversation: Annotated[str | None, Query(description="only of this conversation")] = None,
        sender: Annotated[str | None, Query(description="only of this sender, by the platform's id")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """What came in, newest first. A page may be short before the end; `next` is null only there."""
        found = await desk.inbox.page(
            state=state, source=source, conversation=conversation, sender=sender, limit=limit, after=after
        )
        return json_response(found._asdict())

    @router.get("/v1/inbox/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One message with its history and the payload as it came."""
        return json_response(await desk.inbox.show(id))

    @router.post("/v1/inbox/{id}/retry", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Start one that failed afresh."""
        await read_fields(request, {})
        return json_response(await desk.inbox.retry(id))

    @router.get("/v1/sources", dependencies=STRICT_QUERY)
    @requires(READ)
    async def sources() -> Response:
        """How far each source was read, and what is wrong with it."""
        return json_response({"items": await desk.inbox.sources(), "next": None})

    return router
