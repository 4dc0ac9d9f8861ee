"""The roster: people who may write to the inbox, with squad and role."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.roster import FIELDS
from ...inbound.service import InboundService
from ...outbound.contacts.uploads import read_rows, upload_format
from ..bodies import json_response, page_response, read_json
from ..body_limits import reject_oversized_upload
from ..ndjson_streams import NDJSON, UPLOAD, import_response
from ..openapi_responses import CREATED, ERROR_RESPONSES, NOT_FOUND, body_schema, content_options
from ..query_parameters import STRICT_QUERY, After

IMPORT = "/v1/roster:import"
COUNTS = ("created", "changed", "unchanged", "refused")


def routes(inbound: InboundService, *, largest: int, most: int) -> APIRouter:
    """Return the routes under /v1/roster; `largest` limits a row in bytes, `most` the rows of an import."""
    router = APIRouter(tags=["roster"], responses=ERROR_RESPONSES)

    @router.get("/v1/roster", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        squad: Annotated[str | None, Query(description="Filter by squad.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List roster entries by name; `source` is null for all sources."""
        return page_response(await inbound.roster.page(squad=squad, limit=limit, after=after))

    @router.put("/v1/roster", openapi_extra=body_schema(FIELDS), responses=CREATED)
    @requires(OPERATE)
    async def put(request: Request) -> Response:
        """Create a roster entry (201), or update it (200)."""
        person, what = await inbound.roster.put(await read_json(request))
        return json_response(person, 201 if what == "created" else 200)

    @router.delete("/v1/roster", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def remove(
        sender: str, source: Annotated[str | None, Query(description="Default: the entry for all sources.")] = None
    ) -> Response:
        """Delete a roster entry; earlier messages stay."""
        return json_response({**await inbound.roster.remove(sender, source), "removed": True})

    @router.get("/v1/roster/log", dependencies=STRICT_QUERY)
    @requires(READ)
    async def log(
        *,
        sender: Annotated[str | None, Query(description="Filter by sender.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List roster changes and messages sent on behalf of others, newest first."""
        return page_response(await inbound.roster.log(sender=sender, limit=limit, after=after))

    @router.post(IMPORT, dependencies=STRICT_QUERY, openapi_extra=UPLOAD, **content_options(NDJSON))
    @requires(OPERATE)
    async def bulk_import(request: Request, *, dry_run: bool = False) -> Response:
        """Import roster entries from CSV or NDJSON; returns invalid rows and a summary."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        upload = read_rows(request.stream(), form, largest=largest, most_lines=most)
        imported = inbound.roster.take(upload, dry_run=dry_run)
        return await import_response(request, imported, COUNTS, more=lambda: {"dry_run": dry_run})

    return router
