"""Dead letters: messages that failed permanently; retry and discard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.dead_letters import MAX_MOVED
from ...outbound.service import OutboundService
from ..bodies import json_response, page_response, read_fields
from ..openapi_responses import ERROR_RESPONSES, body_schema
from ..query_parameters import STRICT_QUERY

WHICH = {
    "channel": Field("string", "filter by channel", "phone"),
    "category": Field("string", "filter by error category", "permanent"),
    "unknown": Field("boolean", "only uncertain messages (true), or only certain failures (false)", False),
    "limit": Field("integer", f"maximum number of messages, up to {MAX_MOVED:,}", MAX_MOVED),
}

RETRY = {**WHICH, "per_second": Field("number", "messages per second; default: all at once", 5)}


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/dead."""
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
        """List dead letters, newest first, with their last error."""
        return page_response(
            await outbound.dead.page(channel=channel, category=category, unknown=unknown, limit=limit, after=after)
        )

    @router.get("/groups", dependencies=STRICT_QUERY)
    @requires(READ)
    async def groups() -> Response:
        """Count dead letters by channel, error category and certainty, most frequent first."""
        return json_response({"items": await outbound.dead.groups()})

    @router.post("/retry", openapi_extra=body_schema(RETRY, required=False))
    @requires(OPERATE)
    async def retry(request: Request) -> Response:
        """Retry dead letters. Uncertain messages only with `unknown: true`: they may arrive twice."""
        result = await outbound.dead.retry_all(**await _filters(request, RETRY))
        return json_response({"retried": result.moved, "more": result.more})

    @router.post("/discard", openapi_extra=body_schema(WHICH, required=False))
    @requires(OPERATE)
    async def discard(request: Request) -> Response:
        """Discard dead letters."""
        result = await outbound.dead.discard_all(**await _filters(request, WHICH))
        return json_response({"discarded": result.moved, "more": result.more})

    return router


async def _filters(request: Request, fields: Mapping[str, Field]) -> dict[str, Any]:
    given = await read_fields(request, fields)
    return {name: value for name, value in given.items() if value is not None}
