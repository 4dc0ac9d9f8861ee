"""The log of all that was sent: to whom, when, with what result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from ...access.rules import READ, allowed
from ...model.errors import Invalid
from ...outbound.desk import Desk
from ...outbound.sent import COLUMNS
from ..bodies import PROBLEMS, answer, gives
from ..exchange import CSV
from ..queries import CHECKED
from ..sheet import FORMS, head, sheet


def routes(desk: Desk) -> APIRouter:
    """The one route."""
    router = APIRouter(prefix="/v1/log", tags=["log"], responses=PROBLEMS)

    @router.get("", dependencies=CHECKED, response_class=Response, responses=gives(CSV, as_json=True))
    @allowed(READ)
    async def log(
        channel: str | None = None,
        to: str | None = None,
        limit: int = 50,
        after: str | None = None,
        format: Annotated[str, Query(description="json (a page), csv or csv-exact (all of it)")] = "json",
    ) -> Response:
        """What was sent, newest first. `csv` is safe for spreadsheets, `csv-exact` changes no cell."""
        if format == "json":
            page = await desk.sent.page(channel=channel, to=to, limit=limit, after=after)
            return answer(page._asdict())
        if format not in FORMS:
            raise Invalid(
                f"there is no format {format!r}", field="format", remedy="use json, csv or csv-exact"
            )
        lines = _lines(desk, channel, to, exact=format == "csv-exact")
        headers = {"content-disposition": 'attachment; filename="tidings-sent.csv"'}
        return StreamingResponse(lines, 200, headers, media_type="text/csv; charset=utf-8")

    return router


async def _lines(desk: Desk, channel: str | None, to: str | None, *, exact: bool) -> AsyncIterator[bytes]:
    yield head(COLUMNS)
    async for rows in desk.sent.export(channel=channel, to=to):
        yield sheet(rows, COLUMNS, exact=exact)
