"""Broadcasts: one content for many, made, filled, started, stopped and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from ...access.permissions import OPERATE, READ, SEND, requires
from ...inputs.fields import Field
from ...model.errors import Invalid
from ...outbound.broadcasts.recipient_results import RESULT_COLUMNS, result_cells
from ...outbound.broadcasts.request_parser import BROADCAST_FIELDS
from ...outbound.broadcasts.service import CHANGES
from ...outbound.contacts.uploads import read_rows, upload_format
from ...outbound.service import OutboundService
from ...store.port import Row
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_fields,
    read_json,
    response_content,
)
from ..csv_export import FORMS, csv_header, csv_rows
from ..errors import MalformedBody
from ..ndjson_streams import CSV, UPLOAD
from ..query_parameters import STRICT_QUERY, After
from .bulk import reject_oversized_upload

RECIPIENTS = "/v1/broadcasts/{id}/recipients"
REASON = {"reason": Field("string", "shown with it", "wrong list")}
UNKNOWN = {"unknown": Field("boolean", "retry uncertain ones too: they may arrive twice", False)}
State = Annotated[str | None, Query(description="only in this state")]


def routes(desk: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/broadcasts; `largest` is for a row of an upload, `most` for their number."""
    router = APIRouter(tags=["broadcasts"], responses=ERROR_RESPONSES)
    _create_routes(router, desk, largest, most)
    _read_routes(router, desk)
    _action_routes(router, desk)
    return router


def _create_routes(router: APIRouter, desk: OutboundService, largest: int, most: int) -> None:
    @router.post(
        "/v1/broadcasts",
        status_code=201,
        openapi_extra=body_schema(BROADCAST_FIELDS, keyed=True),
        responses=CONFLICT,
    )
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Make a broadcast. With addresses or a list it is frozen at once, and starts as its trigger says."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.broadcast_creator.create(body, key=key)
        return created_response(made, f"/v1/broadcasts/{made.answer['id']}")

    @router.post(RECIPIENTS, dependencies=STRICT_QUERY, openapi_extra=UPLOAD, responses=NOT_FOUND | CONFLICT)
    @requires(SEND)
    async def upload(
        request: Request,
        id: str,
        *,
        expect: Annotated[int | None, Query(description="how many read_rows there must be")] = None,
        freeze: Annotated[bool, Query(description="false: wait for a call of freeze")] = True,
    ) -> Response:
        """Recipients as CSV or NDJSON; the end of the upload freezes them. Repeat a broken one as it was."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        found = read_rows(request.stream(), form, largest=largest, most_lines=most)
        try:
            return json_response(
                await desk.broadcast_creator.upload(id, found, freezes=freeze, expected=expect)
            )
        except ClientDisconnect:
            raise MalformedBody(
                "the upload broke off", remedy="repeat it as it was; it goes on from there"
            ) from None

    @router.post("/v1/broadcasts/{id}/freeze", responses=NOT_FOUND | CONFLICT)
    @requires(SEND)
    async def freeze(request: Request, id: str) -> Response:
        """Nothing more will come in: it may start."""
        await read_fields(request, {})
        return json_response(await desk.broadcast_creator.freeze(id))


def _read_routes(router: APIRouter, desk: OutboundService) -> None:
    @router.get("/v1/broadcasts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *, state: State = None, xref: str | None = None, limit: int = 50, after: After = None
    ) -> Response:
        """Broadcasts, newest first, each with its exact tally."""
        found = await desk.broadcasts.page(state=state, xref=xref, limit=limit, after=after)
        return json_response(found._asdict())

    @router.get("/v1/broadcasts/counts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def counts(
        ids: Annotated[str, Query(description="up to 100 ids, with commas between")],
    ) -> Response:
        """State and tally of several broadcasts, all at one moment."""
        wanted = [id_ for id_ in ids.split(",") if id_]
        return json_response({"items": await desk.broadcasts.counts(wanted)})

    @router.get("/v1/broadcasts/reports", dependencies=STRICT_QUERY, responses=NOT_FOUND)
    @requires(READ)
    async def reports(
        *, xref: Annotated[str | None, Query(description="only this group")] = None, limit: int = 20,
        after: After = None,
    ) -> Response:  # fmt: skip
        """Broadcasts added up by their `xref`."""
        if xref is not None:
            return json_response({"items": [await desk.broadcasts.report(xref)], "next": None})
        return json_response((await desk.broadcasts.reports(limit=limit, after=after))._asdict())

    @router.get("/v1/broadcasts/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One broadcast with its options, its times and its exact tally."""
        return json_response(await desk.broadcasts.show(id))

    @router.get(RECIPIENTS, responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def recipients(id: str, *, state: State = None, limit: int = 50, after: After = None) -> Response:
        """Who gets it, in the order they were frozen, each with its tries and what the other side said."""
        found = await desk.broadcasts.recipients(id, state=state, limit=limit, after=after)
        return json_response(found._asdict())

    @router.get(
        "/v1/broadcasts/{id}/export",
        response_class=Response,
        responses=NOT_FOUND | response_content(CSV),
        dependencies=STRICT_QUERY,
    )
    @requires(READ)
    async def export(
        id: str,
        *,
        format: Annotated[str, Query(description="csv (safe for spreadsheets) or csv-exact")] = "csv",
        state: State = None,
    ) -> Response:
        """All recipients as CSV. `csv` is safe for spreadsheets, `csv-exact` changes no cell."""
        if format not in FORMS:
            raise Invalid(f"there is no format {format!r}", field="format", remedy="use csv or csv-exact")
        pages = await desk.broadcasts.export(id, state=state)
        headers = {"content-disposition": 'attachment; filename="tidings-broadcast.csv"'}
        lines = _lines(pages, exact=format == "csv-exact")
        return StreamingResponse(lines, 200, headers, media_type="text/csv; charset=utf-8")


def _action_routes(router: APIRouter, desk: OutboundService) -> None:
    wish: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.patch("/v1/broadcasts/{id}", openapi_extra=body_schema(CHANGES), **wish)
    @requires(OPERATE)
    async def change(request: Request, id: str) -> Response:
        """Another rate while it runs; null lifts it."""
        return json_response(await desk.broadcasts.change(id, await read_json(request)))

    @router.post("/v1/broadcasts/{id}/trigger", **wish)
    @requires(SEND)
    async def trigger(request: Request, id: str) -> Response:
        """Start it now. What has started already is left alone, so the call can be repeated."""
        await read_fields(request, {})
        return json_response(await desk.broadcasts.trigger(id))

    @router.post("/v1/broadcasts/{id}/pause", openapi_extra=body_schema(REASON, required=False), **wish)
    @requires(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Start nothing more of it; what is being sent at this moment ends as it would."""
        given = await read_fields(request, REASON)
        return json_response(await desk.broadcasts.pause(id, reason=given.get("reason") or "paused by hand"))

    @router.post("/v1/broadcasts/{id}/resume", **wish)
    @requires(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Go on after a pause, a canary, or a stop by errors."""
        await read_fields(request, {})
        return json_response(await desk.broadcasts.resume(id))

    @router.post("/v1/broadcasts/{id}/cancel", openapi_extra=body_schema(REASON, required=False), **wish)
    @requires(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Give it up: what waits is cancelled, what is being sent is asked to end."""
        given = await read_fields(request, REASON)
        return json_response(
            await desk.broadcasts.cancel(id, reason=given.get("reason") or "cancelled by hand")
        )

    @router.post("/v1/broadcasts/{id}/retry", openapi_extra=body_schema(UNKNOWN, required=False), **wish)
    @requires(OPERATE)
    async def retry(request: Request, id: str) -> Response:
        """Start its failed ones afresh, with all their tries."""
        given = await read_fields(request, UNKNOWN)
        return json_response(await desk.broadcasts.retry(id, unknown=bool(given.get("unknown"))))


async def _lines(pages: AsyncIterator[list[Row]], *, exact: bool) -> AsyncIterator[bytes]:
    yield csv_header(RESULT_COLUMNS)
    async for found in pages:
        yield csv_rows(map(result_cells, found), RESULT_COLUMNS, exact=exact)
