"""The suppression list (opt-outs), and its import."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE, READ, SEND, requires
from ...outbound.contacts.bulk_import import import_opt_outs
from ...outbound.contacts.suppressions import SUPPRESSION_FIELDS
from ...outbound.contacts.uploads import read_rows, upload_format
from ...outbound.service import OutboundService
from ..bodies import created_response, json_response, page_response, read_json
from ..body_limits import reject_oversized_upload
from ..ndjson_streams import NDJSON, UPLOAD, import_response
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, content_options, create_options
from ..query_parameters import STRICT_QUERY, After

IMPORT = "/v1/suppressions:import"
COUNTS = ("created", "unchanged", "refused")


def routes(outbound: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Return the routes under /v1/suppressions; `largest` limits a row in bytes, `most` the rows."""
    router = APIRouter(tags=["suppressions"], responses=ERROR_RESPONSES)

    @router.post("/v1/suppressions", **create_options(SUPPRESSION_FIELDS))
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Suppress an address. Messages to it are skipped from now on, including accepted ones."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.suppressions.create(body, key=key)
        return created_response(made)

    @router.get("/v1/suppressions", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        address: Annotated[str | None, Query(description="Filter by address.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List suppressed addresses; `channel` is null for all channels."""
        return page_response(await outbound.suppressions.page(address=address, limit=limit, after=after))

    @router.delete("/v1/suppressions", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def remove(
        address: str, channel: Annotated[str | None, Query(description="Default: the entry for all channels.")] = None
    ) -> Response:
        """Remove an address from the suppression list."""
        await outbound.suppressions.remove(address, channel)
        return json_response({"address": address, "channel": channel, "removed": True})

    @router.post(IMPORT, dependencies=STRICT_QUERY, openapi_extra=UPLOAD, **content_options(NDJSON))
    @requires(OPERATE)
    async def bulk_import(
        request: Request, channel: Annotated[str | None, Query(description="Channel for rows without one.")] = None
    ) -> Response:
        """Import `address`, `channel` and `reason` from CSV or NDJSON; returns invalid rows and a summary."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        upload = read_rows(request.stream(), form, largest=largest, most_lines=most)
        tenant = current_caller().tenant
        imported = import_opt_outs(upload, outbound.suppressions, channel=channel, tenant=tenant)
        return await import_response(request, imported, COUNTS)

    return router
