"""Dead letters: what failed for good and waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...outbound.dead import MOST
from ...outbound.desk import Desk
from ...reading.fields import Field
from ..bodies import PROBLEMS, answer, read_fields, takes
from ..queries import CHECKED

WHICH = {
    "channel": Field("string", "only of this channel", "phone"),
    "category": Field("string", "only of this category of errors", "permanent"),
    "unknown": Field("boolean", "only those in doubt (true), or only certain failures (false)", False),
    "limit": Field("integer", f"this many at the most, up to {MOST:,}", MOST),
}

RETRY = {**WHICH, "per_second": Field("number", "so many a second; without it all at once", 5)}


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/dead."""
    router = APIRouter(prefix="/v1/dead", tags=["dead letters"], responses=PROBLEMS)

    @router.get("", dependencies=CHECKED)
    @allowed(READ)
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
        return answer(found._asdict())

    @router.get("/groups", dependencies=CHECKED)
    @allowed(READ)
    async def groups() -> Response:
        """Counted by channel, category and doubt, most frequent first."""
        return answer({"items": await desk.dead.groups()})

    @router.post("/retry", openapi_extra=takes(RETRY, required=False))
    @allowed(OPERATE)
    async def retry(request: Request) -> Response:
        """Start many afresh. Those in doubt only with `unknown: true`: they may then arrive twice."""
        swept = await desk.dead.retry_all(**await _which(request, RETRY))
        return answer({"retried": swept.moved, "more": swept.more})

    @router.post("/discard", openapi_extra=takes(WHICH, required=False))
    @allowed(OPERATE)
    async def discard(request: Request) -> Response:
        """Give many up."""
        swept = await desk.dead.discard_all(**await _which(request, WHICH))
        return answer({"discarded": swept.moved, "more": swept.more})

    return router


async def _which(request: Request, fields: Mapping[str, Field]) -> dict[str, Any]:
    given = await read_fields(request, fields)
    return {name: value for name, value in given.items() if value is not None}
