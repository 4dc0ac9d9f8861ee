"""Broadcasts: create, upload recipients, start, pause, resume, cancel, retry, report."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from ...access.permissions import OPERATE, READ, SEND, requires
from ...inputs.fields import Field
from ...model.errors import Invalid
from ...outbound.broadcasts.recipient_parser import ADDRESS_COLUMNS
from ...outbound.broadcasts.recipient_results import RESULT_COLUMNS, result_cells
from ...outbound.broadcasts.request_parser import BROADCAST_FIELDS
from ...outbound.broadcasts.service import CHANGES
from ...outbound.contacts.uploads import read_rows, upload_format
from ...outbound.service import OutboundService
from ..bodies import REASON, created_response, json_response, page_response, read_fields, read_json, read_reason
from ..body_limits import reject_oversized_upload
from ..csv_export import FORMS, csv_pages
from ..errors import MalformedBody
from ..ndjson_streams import CSV, UPLOAD
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, action_options, content_options, create_options
from ..query_parameters import STRICT_QUERY, After, State

RECIPIENTS = "/v1/broadcasts/{id}/recipients"
UNKNOWN = {"unknown": Field("boolean", "also retry uncertain messages, which may then arrive twice", False)}


def routes(outbound: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Return the routes under /v1/broadcasts; `largest` limits a row in bytes, `most` the rows."""
    router = APIRouter(tags=["broadcasts"], responses=ERROR_RESPONSES)
    _create_routes(router, outbound, largest, most)
    _read_routes(router, outbound)
    _action_routes(router, outbound)
    return router


def _create_routes(router: APIRouter, outbound: OutboundService, largest: int, most: int) -> None:
    @router.post("/v1/broadcasts", **create_options(BROADCAST_FIELDS))
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Create a broadcast. With addresses or a list, its recipients are frozen immediately."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.broadcast_creator.create(body, key=key)
        return created_response(made, f"/v1/broadcasts/{made.answer['id']}")

    @router.post(RECIPIENTS, dependencies=STRICT_QUERY, openapi_extra=UPLOAD, responses=NOT_FOUND | CONFLICT)
    @requires(SEND)
    async def upload(
        request: Request,
        id: str,
        *,
        expect: Annotated[int | None, Query(description="Expected number of rows.")] = None,
        freeze: Annotated[bool, Query(description="False: do not freeze the recipients yet.")] = True,
    ) -> Response:
        """Upload recipients as CSV or NDJSON and freeze them. Repeat an interrupted upload unchanged."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        found = read_rows(request.stream(), form, largest=largest, most_lines=most, required=ADDRESS_COLUMNS)
        try:
            return json_response(await outbound.broadcast_creator.upload(id, found, freezes=freeze, expected=expect))
        except ClientDisconnect:
            raise MalformedBody(
                "the upload was interrupted", remedy="repeat it unchanged; it continues where it stopped"
            ) from None

    @router.post("/v1/broadcasts/{id}/freeze", responses=NOT_FOUND | CONFLICT)
    @requires(SEND)
    async def freeze(request: Request, id: str) -> Response:
        """Freeze the recipients, so that the broadcast can start."""
        await read_fields(request, {})
        return json_response(await outbound.broadcast_creator.freeze(id))


def _read_routes(router: APIRouter, outbound: OutboundService) -> None:
    @router.get("/v1/broadcasts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(*, state: State = None, xref: str | None = None, limit: int = 50, after: After = None) -> Response:
        """List broadcasts, newest first, with exact counts."""
        return page_response(await outbound.broadcasts.page(state=state, xref=xref, limit=limit, after=after))

    @router.get("/v1/broadcasts/counts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def counts(ids: Annotated[str, Query(description="Up to 100 ids, separated by commas.")]) -> Response:
        """Return state and counts of several broadcasts in one consistent snapshot."""
        wanted = [id_ for id_ in ids.split(",") if id_]
        return json_response({"items": await outbound.broadcasts.counts(wanted)})

    @router.get("/v1/broadcasts/reports", dependencies=STRICT_QUERY, responses=NOT_FOUND)
    @requires(READ)
    async def reports(
        *,
        xref: Annotated[str | None, Query(description="Filter by group.")] = None,
        limit: int = 20,
        after: After = None,
    ) -> Response:
        """Return reports of broadcasts grouped by `xref`."""
        if xref is not None:
            return json_response({"items": [await outbound.broadcasts.report(xref)], "next": None})
        return page_response(await outbound.broadcasts.reports(limit=limit, after=after))

    @router.get("/v1/broadcasts/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one broadcast with its options, times and exact counts."""
        return json_response(await outbound.broadcasts.show(id))

    @router.get(RECIPIENTS, responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def recipients(id: str, *, state: State = None, limit: int = 50, after: After = None) -> Response:
        """List recipients in upload order, with attempts and the provider's receipt or error."""
        return page_response(await outbound.broadcasts.recipients(id, state=state, limit=limit, after=after))

    @router.get("/v1/broadcasts/{id}/export", dependencies=STRICT_QUERY, **content_options(CSV, errors=NOT_FOUND))
    @requires(READ)
    async def export(
        id: str,
        *,
        format: Annotated[str, Query(description="csv (safe for spreadsheets) or csv-exact.")] = "csv",
        state: State = None,
    ) -> Response:
        """Export all recipients as CSV."""
        if format not in FORMS:
            raise Invalid(f"unknown format {format!r}", field="format", remedy="use csv or csv-exact")
        pages = await outbound.broadcasts.export(id, state=state)
        rows = (map(result_cells, found) async for found in pages)
        headers = {"content-disposition": 'attachment; filename="tidings-broadcast.csv"'}
        lines = csv_pages(rows, RESULT_COLUMNS, exact=format == "csv-exact")
        return StreamingResponse(lines, 200, headers, media_type="text/csv; charset=utf-8")


def _action_routes(router: APIRouter, outbound: OutboundService) -> None:
    errors: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.patch("/v1/broadcasts/{id}", **action_options(CHANGES, required=True))
    @requires(OPERATE)
    async def change(request: Request, id: str) -> Response:
        """Change the rate of a running broadcast; null removes the limit."""
        return json_response(await outbound.broadcasts.change(id, await read_json(request)))

    @router.post("/v1/broadcasts/{id}/trigger", **errors)
    @requires(SEND)
    async def trigger(request: Request, id: str) -> Response:
        """Start a broadcast now. Safe to repeat: a running one stays as it is."""
        await read_fields(request, {})
        return json_response(await outbound.broadcasts.trigger(id))

    @router.post("/v1/broadcasts/{id}/pause", **action_options(REASON))
    @requires(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Pause a broadcast. Messages that are being sent finish."""
        reason = await read_reason(request, "paused by hand")
        return json_response(await outbound.broadcasts.pause(id, reason=reason))

    @router.post("/v1/broadcasts/{id}/resume", **errors)
    @requires(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Resume after a pause, a canary, or the error limit."""
        await read_fields(request, {})
        return json_response(await outbound.broadcasts.resume(id))

    @router.post("/v1/broadcasts/{id}/cancel", **action_options(REASON))
    @requires(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Cancel a broadcast: pending messages are cancelled, and those being sent are asked to stop."""
        reason = await read_reason(request, "cancelled by hand")
        return json_response(await outbound.broadcasts.cancel(id, reason=reason))

    @router.post("/v1/broadcasts/{id}/retry", **action_options(UNKNOWN))
    @requires(OPERATE)
    async def retry(request: Request, id: str) -> Response:
        """Retry failed messages with all their attempts."""
        given = await read_fields(request, UNKNOWN)
        return json_response(await outbound.broadcasts.retry(id, unknown=bool(given.get("unknown"))))
