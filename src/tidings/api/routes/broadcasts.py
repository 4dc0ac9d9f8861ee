"""Broadcasts: one content for many, made, filled, started, stopped and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from ...access.rules import OPERATE, READ, SEND, allowed
from ...model.errors import Invalid
from ...outbound.broadcasting.broadcasts import CHANGES
from ...outbound.broadcasting.plans import FIELDS
from ...outbound.broadcasting.roll import COLUMNS, cells
from ...outbound.desk import Desk
from ...outbound.people.uploads import form_of, rows
from ...reading.fields import Field
from ...store.port import Row
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, created, gives, read_fields, read_json, takes
from ..errors import Malformed
from ..exchange import CSV, UPLOAD
from ..queries import CHECKED, After
from ..sheet import FORMS, head, sheet
from .bulk import refuse_announced

RECIPIENTS = "/v1/broadcasts/{id}/recipients"
REASON = {"reason": Field("string", "shown with it", "wrong list")}
HELD = {"held": Field("boolean", "those in doubt too: they may then arrive twice", False)}
State = Annotated[str | None, Query(description="only in this state")]


def routes(desk: Desk, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/broadcasts; `largest` is for a row of an upload, `most` for their number."""
    router = APIRouter(tags=["broadcasts"], responses=PROBLEMS)
    _making(router, desk, largest, most)
    _looking(router, desk)
    _asking(router, desk)
    return router


def _making(router: APIRouter, desk: Desk, largest: int, most: int) -> None:
    @router.post(
        "/v1/broadcasts", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT
    )
    @allowed(SEND)
    async def create(request: Request) -> Response:
        """Make a broadcast. With addresses or a list it is frozen at once, and starts as its trigger says."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.freezer.create(body, key=key)
        return created(made, f"/v1/broadcasts/{made.answer['id']}")

    @router.post(RECIPIENTS, dependencies=CHECKED, openapi_extra=UPLOAD, responses=MISSING | CONFLICT)
    @allowed(SEND)
    async def upload(
        request: Request,
        id: str,
        *,
        expect: Annotated[int | None, Query(description="how many rows there must be")] = None,
        freeze: Annotated[bool, Query(description="false: wait for a call of freeze")] = True,
    ) -> Response:
        """Recipients as CSV or NDJSON; the end of the upload freezes them. Repeat a broken one as it was."""
        refuse_announced(request)
        form = form_of(request.headers.get("content-type", ""))
        found = rows(request.stream(), form, largest=largest, most_lines=most)
        try:
            return answer(await desk.freezer.upload(id, found, freezes=freeze, expected=expect))
        except ClientDisconnect:
            raise Malformed(
                "the upload broke off", remedy="repeat it as it was; it goes on from there"
            ) from None

    @router.post("/v1/broadcasts/{id}/freeze", responses=MISSING | CONFLICT)
    @allowed(SEND)
    async def freeze(request: Request, id: str) -> Response:
        """Nothing more will come in: it may start."""
        await read_fields(request, {})
        return answer(await desk.freezer.freeze(id))


def _looking(router: APIRouter, desk: Desk) -> None:
    @router.get("/v1/broadcasts", dependencies=CHECKED)
    @allowed(READ)
    async def page(
        *, state: State = None, xref: str | None = None, limit: int = 50, after: After = None
    ) -> Response:
        """Broadcasts, newest first, each with its exact tally."""
        found = await desk.broadcasts.page(state=state, xref=xref, limit=limit, after=after)
        return answer(found._asdict())

    @router.get("/v1/broadcasts/counts", dependencies=CHECKED)
    @allowed(READ)
    async def counts(
        ids: Annotated[str, Query(description="up to 100 ids, with commas between")],
    ) -> Response:
        """State and tally of several broadcasts, all at one moment."""
        wanted = [id_ for id_ in ids.split(",") if id_]
        return answer({"items": await desk.broadcasts.counts(wanted)})

    @router.get("/v1/broadcasts/reports", dependencies=CHECKED, responses=MISSING)
    @allowed(READ)
    async def reports(
        *, xref: Annotated[str | None, Query(description="only this group")] = None, limit: int = 20,
        after: After = None,
    ) -> Response:  # fmt: skip
        """Broadcasts added up by their `xref`."""
        if xref is not None:
            return answer({"items": [await desk.broadcasts.report(xref)], "next": None})
        return answer((await desk.broadcasts.reports(limit=limit, after=after))._asdict())

    @router.get("/v1/broadcasts/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One broadcast with its options, its times and its exact tally."""
        return answer(await desk.broadcasts.show(id))

    @router.get(RECIPIENTS, responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def recipients(id: str, *, state: State = None, limit: int = 50, after: After = None) -> Response:
        """Who gets it, in the order they were frozen, each with its tries and what the other side said."""
        found = await desk.broadcasts.recipients(id, state=state, limit=limit, after=after)
        return answer(found._asdict())

    @router.get(
        "/v1/broadcasts/{id}/export",
        response_class=Response,
        responses=MISSING | gives(CSV),
        dependencies=CHECKED,
    )
    @allowed(READ)
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


def _asking(router: APIRouter, desk: Desk) -> None:
    wish: dict[str, Any] = {"responses": MISSING | CONFLICT}

    @router.patch("/v1/broadcasts/{id}", openapi_extra=takes(CHANGES), **wish)
    @allowed(OPERATE)
    async def change(request: Request, id: str) -> Response:
        """Another rate while it runs; null lifts it."""
        return answer(await desk.broadcasts.change(id, await read_json(request)))

    @router.post("/v1/broadcasts/{id}/trigger", **wish)
    @allowed(SEND)
    async def trigger(request: Request, id: str) -> Response:
        """Start it now. What has started already is left alone, so the call can be repeated."""
        await read_fields(request, {})
        return answer(await desk.broadcasts.trigger(id))

    @router.post("/v1/broadcasts/{id}/pause", openapi_extra=takes(REASON, required=False), **wish)
    @allowed(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Start nothing more of it; what is being sent at this moment ends as it would."""
        given = await read_fields(request, REASON)
        return answer(await desk.broadcasts.pause(id, reason=given.get("reason") or "paused by hand"))

    @router.post("/v1/broadcasts/{id}/resume", **wish)
    @allowed(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Go on after a pause, a canary, or a stop by errors."""
        await read_fields(request, {})
        return answer(await desk.broadcasts.resume(id))

    @router.post("/v1/broadcasts/{id}/cancel", openapi_extra=takes(REASON, required=False), **wish)
    @allowed(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Give it up: what waits is cancelled, what is being sent is asked to end."""
        given = await read_fields(request, REASON)
        return answer(await desk.broadcasts.cancel(id, reason=given.get("reason") or "cancelled by hand"))

    @router.post("/v1/broadcasts/{id}/retry", openapi_extra=takes(HELD, required=False), **wish)
    @allowed(OPERATE)
    async def retry(request: Request, id: str) -> Response:
        """Start its failed ones afresh, with all their tries."""
        given = await read_fields(request, HELD)
        return answer(await desk.broadcasts.retry(id, held=bool(given.get("held"))))


async def _lines(pages: AsyncIterator[list[Row]], *, exact: bool) -> AsyncIterator[bytes]:
    yield head(COLUMNS)
    async for found in pages:
        yield sheet(map(cells, found), COLUMNS, exact=exact)
