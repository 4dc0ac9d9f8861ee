"""The roster: who may speak, with squad and role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.roster import FIELDS
from ...inbound.service import InboundService
from ...outbound.contacts.bulk_import import BulkImportProgress
from ...outbound.contacts.uploads import NumberedRow, read_rows, upload_format
from ..bodies import (
    CREATED,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    json_response,
    read_json,
    response_content,
)
from ..errors import request_id_of
from ..ndjson_streams import NDJSON, UPLOAD, NdjsonStreamResponse, import_progress
from ..query_parameters import STRICT_QUERY, After
from .bulk import reject_oversized_upload

IMPORT = "/v1/roster:import"
COUNTS = ("created", "changed", "unchanged", "refused")


def routes(desk: InboundService, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/roster; `largest` is for a row in bytes, `most` for their number."""
    router = APIRouter(tags=["roster"], responses=ERROR_RESPONSES)

    @router.get("/v1/roster", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        squad: Annotated[str | None, Query(description="only of this squad")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who may speak, by name; `source` is null where it is all of them."""
        return json_response((await desk.roster.page(squad=squad, limit=limit, after=after))._asdict())

    @router.put("/v1/roster", openapi_extra=body_schema(FIELDS), responses=CREATED)
    @requires(OPERATE)
    async def put(request: Request) -> Response:
        """Put somebody on the roster (201), or change the entry (200)."""
        person, what = await desk.roster.put(await read_json(request))
        return json_response(person, 201 if what == "created" else 200)

    @router.delete("/v1/roster", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def remove(
        sender: str,
        source: Annotated[str | None, Query(description="left out: the entry for every source")] = None,
    ) -> Response:
        """Take somebody off; what they said before stays."""
        return json_response({**await desk.roster.remove(sender, source), "removed": True})

    @router.get("/v1/roster/log", dependencies=STRICT_QUERY)
    @requires(READ)
    async def log(
        *,
        sender: Annotated[str | None, Query(description="only about this sender")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who was put on it and taken off, and who spoke for somebody else, newest first."""
        return json_response((await desk.roster.log(sender=sender, limit=limit, after=after))._asdict())

    @router.post(
        IMPORT,
        dependencies=STRICT_QUERY,
        openapi_extra=UPLOAD,
        response_class=Response,
        responses=response_content(NDJSON),
    )
    @requires(OPERATE)
    async def take(request: Request, *, dry_run: bool = False) -> Response:
        """Many at once: CSV or NDJSON with the fields of an entry; bad rows and a summary out."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        upload = read_rows(request.stream(), form, largest=largest, most_lines=most)
        exchange = NdjsonStreamResponse(request_id_of(request), COUNTS, more=lambda: {"dry_run": dry_run})
        taken = taken_in(desk, upload, dry_run=dry_run)
        exchange.start(import_progress(taken, COUNTS, request_id_of(request), lambda: None))
        await exchange.first_answer()
        return exchange

    return router


async def taken_in(
    desk: InboundService, upload: AsyncIterator[NumberedRow], *, dry_run: bool
) -> AsyncIterator[BulkImportProgress]:
    """An import of the roster, told as all imports are."""
    async for progress in desk.roster.take(upload, dry_run=dry_run):
        yield BulkImportProgress(progress.counts, progress.bad)
