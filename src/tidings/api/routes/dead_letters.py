"""Dead letters: what failed for good and waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.dead_letters import MAX_MOVED
from ...outbound.service import OutboundService
from ..bodies import ERROR_RESPONSES, body_schema, json_response, read_fields
from ..query_parameters import STRICT_QUERY

WHICH = {
    "channel": Field("string", "only of this channel", "phone"),
    "category": Field("string", "only of this category of errors", "permanent"),
    "unknown": Field("boolean", "only those in doubt (true), or only certain failures (false)", False),
    "limit": Field("integer", f"this many at the most, up to {MAX_MOVED:,}", MAX_MOVED),
}

RETRY = {**WHICH, "per_second": Field("number", "so many a second; without it all at once", 5)}


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/dead."""
    router = APIRouter(prefix="/v1/dead", tags=["dead letters"], responses=ERROR_RESPONSES)

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        channel: str | None = None,
        category: str | None = None,
        unknown: bool | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Response:
        """Dead letters, newest first, each with its last error."""
        found = await desk.dead.page(
            channel=channel, category=category, unknown=unknown, limit=limit, after=after
        )
        return json_response(found._asdict())

    @router.get("/groups", dependencies=STRICT_QUERY)
    @requires(READ)
    async def groups() -> Response:
        """Counted by channel, category and doubt, most frequent first."""
        return json_response({"items": await desk.dead.groups()})

    @router.post("/retry", openapi_extra=body_schema(RETRY, required=False))
    @requires(OPERATE)
    async def retry(request: Request) -> Response:
        """Start many afresh. Those in doubt only with `unknown: true`: they may then arrive twice."""
        swept = await desk.dead.retry_all(**await _which(request, RETRY))
        return json_response({"retried": swept.moved, "more": swept.more})

    @router.post("/discard", openapi_extra=body_schema(WHICH, required=False))
    @requires(OPERATE)
    async def discard(request: Request) -> Response:
        """Give many up."""
        swept = await desk.dead.discard_all(**await _which(request, WHICH))
        return json_response({"discarded": swept.moved, "more": swept.more})

    return router


async def _which(request: Request, fields: Mapping[str, Field]) -> dict[str, Any]:
    given = await read_fields(request, fields)
    return {name: value for name, value in given.items() if value is not None}
