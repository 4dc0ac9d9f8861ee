"""The inbox: what came in, and how far each source was read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...inbound.desk import InboundDesk
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields
from ..queries import CHECKED, After


def routes(desk: InboundDesk) -> APIRouter:
    """Everything under /v1/inbox and /v1/sources."""
    router = APIRouter(tags=["inbox"], responses=PROBLEMS)

    @router.get("/v1/inbox", dependencies=CHECKED)
    @allowed(READ)
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
        return answer(found._asdict())

    @router.get("/v1/inbox/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One message with its history and the payload as it came."""
        return answer(await desk.inbox.show(id))

    @router.post("/v1/inbox/{id}/retry", responses=MISSING | CONFLICT)
    @allowed(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Start one that failed afresh."""
        await read_fields(request, {})
        return answer(await desk.inbox.retry(id))

    @router.get("/v1/sources", dependencies=CHECKED)
    @allowed(READ)
    async def sources() -> Response:
        """How far each source was read, and what is wrong with it."""
        return answer({"items": await desk.inbox.sources(), "next": None})

    return router
