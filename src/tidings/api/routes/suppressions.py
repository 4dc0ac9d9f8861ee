"""Suppressions: who has opted out, the way in and the way back."""

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
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_json,
    response_content,
)
from ..errors import request_id_of
from ..ndjson_streams import NDJSON, UPLOAD, NdjsonStreamResponse, import_progress
from ..query_parameters import STRICT_QUERY, After
from .bulk import reject_oversized_upload

IMPORT = "/v1/suppressions:import"
COUNTS = ("created", "unchanged", "refused")


def routes(desk: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/suppressions; `largest` is for a row in bytes, `most` for their number."""
    router = APIRouter(tags=["suppressions"], responses=ERROR_RESPONSES)

    @router.post(
        "/v1/suppressions",
        status_code=201,
        openapi_extra=body_schema(SUPPRESSION_FIELDS, keyed=True),
        responses=CONFLICT,
    )
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Opt out: what is due to this address is skipped from now on, also what was accepted before."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.suppressions.create(body, key=key)
        return created_response(made)

    @router.get("/v1/suppressions", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        address: Annotated[str | None, Query(description="only this one")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who has opted out, by address; `channel` is null where it is all of them."""
        return json_response(
            (await desk.suppressions.page(address=address, limit=limit, after=after))._asdict()
        )

    @router.delete("/v1/suppressions", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def remove(
        address: str,
        channel: Annotated[str | None, Query(description="left out: the opt-out from all of them")] = None,
    ) -> Response:
        """The way back: this address may be written to again."""
        await desk.suppressions.remove(address, channel)
        return json_response({"address": address, "channel": channel, "removed": True})

    @router.post(
        IMPORT,
        dependencies=STRICT_QUERY,
        openapi_extra=UPLOAD,
        response_class=Response,
        responses=response_content(NDJSON),
    )
    @requires(OPERATE)
    async def take(
        request: Request,
        channel: Annotated[str | None, Query(description="where a row names none")] = None,
    ) -> Response:
        """Opt out many: CSV or NDJSON with `address`, `channel` and `reason`; bad rows and a summary out."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        upload = read_rows(request.stream(), form, largest=largest, most_lines=most)
        exchange = NdjsonStreamResponse(request_id_of(request), COUNTS)
        taken = import_opt_outs(upload, desk.suppressions, channel=channel, tenant=current_caller().tenant)
        exchange.start(import_progress(taken, COUNTS, request_id_of(request), lambda: None))
        await exchange.first_answer()
        return exchange

    return router
