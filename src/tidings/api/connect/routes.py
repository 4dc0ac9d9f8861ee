"""Connect's routes under /api/v1: sessions and broadcasts; errors keep the envelope of the native API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import READ, SEND, requires
from ...inputs.fields import Field, check_fields
from ...model.errors import Conflict, Invalid
from ...outbound.idempotency import CreateResult
from ...outbound.service import OutboundService
from ...store.port import Row
from ..bodies import created_response, json_response, read_json
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, action_options, create_options
from ..query_parameters import STRICT_QUERY
from .requests import CONNECT_FIELDS, broadcast_request
from .responses import RECIPIENT_STATUSES, envelope, recipient, recipient_status, session, status_counts

PREFIX = "/api/v1"
MAX_SCANNED = 10_000  # rows that a numbered page may skip
_SESSIONS = {"sessions": Field("array", "session ids, up to 100", ["cuid"], required=True)}
_PAGE = 100

PageNumber = Annotated[int, Query(ge=1, le=MAX_SCANNED, description="Page, from 1.")]
PerPage = Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")]
Status = Annotated[str | None, Query(description="SCHEDULED, PENDING, SUCCESS or FAIL.")]
Address = Annotated[str | None, Query(description="Part of the address.")]
Sort = Annotated[Literal["createdAt"], Query(description="Ignored: lists are sorted by creation.")]
Order = Annotated[Literal["desc"], Query(description="Ignored: the newest session is first.")]


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix=PREFIX, tags=["connect"], responses=ERROR_RESPONSES)
    _session_routes(router, outbound)
    _broadcast_routes(router, outbound)
    return router


def _broadcast_routes(router: APIRouter, outbound: OutboundService) -> None:
    @router.post("/broadcasts", **create_options(CONNECT_FIELDS))
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Create a session with one broadcast per address."""
        native = broadcast_request(await read_json(request), outbound.clock.now())
        made = await outbound.broadcast_creator.create(native, key=request.headers.get("idempotency-key"))
        id_ = made.answer["id"]
        answer = envelope(session(await outbound.broadcasts.show(id_), _tenant(), native["addresses"]))
        return created_response(CreateResult(answer, made.replayed), f"/v1/broadcasts/{id_}")

    @router.get("/broadcasts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        status: Status = None,
        address: Address = None,
        xref: str | None = None,
        page: PageNumber = 1,
        perPage: PerPage = 20,
        sort: Sort = "createdAt",
        order: Order = "desc",
    ) -> Response:
        """List recipients of all sessions, newest session first."""

        async def rows() -> AsyncIterator[Row]:
            async for found in _sessions(outbound, xref):
                async for row in _recipients(outbound, found, status, address):
                    yield row

        return await _numbered(rows(), page, perPage)

    @router.get("/broadcasts/status-count")
    @requires(READ)
    async def status_count() -> Response:
        """Count the recipients of all sessions by status."""
        total = _total([found async for found in _sessions(outbound, None)])
        waiting = total["SCHEDULED"] + total["PENDING"]
        shown = {"success": total["SUCCESS"], "fail": total["FAIL"], "pending": waiting, "total": total["TOTAL"]}
        return json_response(envelope(shown))

    @router.get("/broadcasts/{cuid}", responses=NOT_FOUND)
    @requires(READ)
    async def show(cuid: str) -> Response:
        """Show one recipient with its session."""
        found = await outbound.broadcasts.recipient(cuid)
        owner = await outbound.broadcasts.show(found["broadcast"])
        whole = session(owner, _tenant(), [])
        return json_response(envelope({**recipient(found, owner, _tenant()), "Session": whole}))


def _session_routes(router: APIRouter, outbound: OutboundService) -> None:
    @router.get("/sessions", dependencies=STRICT_QUERY)
    @requires(READ)
    async def sessions(
        *,
        xref: str | None = None,
        page: PageNumber = 1,
        perPage: PerPage = _PAGE,
        sort: Sort = "createdAt",
        order: Order = "desc",
    ) -> Response:
        """List sessions, newest first."""
        rows = (session(found, _tenant(), []) async for found in _sessions(outbound, xref))
        return await _numbered(rows, page, perPage)

    @router.post("/sessions/broadcast-counts", **action_options(_SESSIONS, required=True))
    @requires(READ)
    async def broadcast_counts(request: Request) -> Response:
        """Count the recipients of several sessions by status."""
        ids = check_fields(await read_json(request), _SESSIONS)["sessions"]
        return json_response(envelope(_total(await outbound.broadcasts.counts([str(id_) for id_ in ids]))))

    @router.get("/sessions/{cuid}", responses=NOT_FOUND)
    @requires(READ)
    async def show_session(cuid: str) -> Response:
        """Show one session with its addresses, up to 10,000."""
        found = await outbound.broadcasts.show(cuid)
        addresses = [row["address"] async for row in _limited(_recipients(outbound, found), MAX_SCANNED)]
        return json_response(envelope(session(found, _tenant(), addresses)))

    @router.get("/sessions/{cuid}/broadcasts", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def broadcasts(
        cuid: str,
        *,
        status: Status = None,
        address: Address = None,
        page: PageNumber = 1,
        perPage: PerPage = _PAGE,
        sort: Sort = "createdAt",
        order: Order = "desc",
    ) -> Response:
        """List the recipients of a session."""
        found = await outbound.broadcasts.show(cuid)
        return await _numbered(_recipients(outbound, found, status, address), page, perPage)

    @router.get("/sessions/{cuid}/trigger", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(SEND)
    async def trigger(cuid: str, *, include_failed: str | None = None) -> Response:
        """Start a session that waits, or retry its failed recipients; a running one stays as it is."""
        found = await outbound.broadcasts.show(cuid)
        counts = status_counts(found["counts"])
        if include_failed == "true" and "retry" in found["actions"]:
            try:
                again = await outbound.broadcasts.retry(cuid)
                return json_response(envelope({"isComplete": False, "count": again["retrying"]}))
            except Conflict:  # only uncertain ones have failed, which might arrive twice
                pass
        if "trigger" in found["actions"]:
            await outbound.broadcasts.trigger(cuid)
        left = counts["SCHEDULED"] + counts["PENDING"]
        return json_response(envelope({"isComplete": not left, "count": left}))


def _total(sessions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = [status_counts(found["counts"]) for found in sessions]
    return {word: sum(one[word] for one in counts) for word in (*RECIPIENT_STATUSES, "TOTAL")}


def _tenant() -> str:
    return current_caller().tenant


async def _sessions(outbound: OutboundService, xref: str | None) -> AsyncIterator[Row]:
    after: str | None = None
    while True:
        found = await outbound.broadcasts.page(xref=xref, limit=_PAGE, after=after)
        for one in found.items:
            yield one
        if found.next is None:
            return
        after = found.next


async def _recipients(
    outbound: OutboundService, found: Mapping[str, Any], status: str | None = None, address: str | None = None
) -> AsyncIterator[Row]:
    if status is not None and status not in RECIPIENT_STATUSES:
        known = ", ".join(RECIPIENT_STATUSES)
        raise Invalid(f"there is no status {status[:60]!r}", field="status", remedy=f"use {known}")
    async for page in await outbound.broadcasts.export(found["id"]):
        for one in page:
            is_wanted = address is None or address.lower() in one["address"].lower()
            if is_wanted and (status is None or recipient_status(one) == status):
                yield recipient(one, found, _tenant())


async def _limited(rows: AsyncIterator[Row], most: int) -> AsyncIterator[Row]:
    count = 0
    async for row in rows:
        count += 1
        if count > most:
            return
        yield row


async def _numbered(rows: AsyncIterator[Row], page: int, size: int) -> Response:
    """One numbered page, and the total as far as rows are counted."""
    first, shown, total = (page - 1) * size, list[Row](), 0
    async for row in _limited(rows, MAX_SCANNED):
        if first <= total < first + size:
            shown.append(row)
        total += 1
    last = max(1, -(-total // size))
    links = {"prev": page - 1 if page > 1 else None, "next": page + 1 if page < last else None}
    return json_response(envelope(shown, total=total, lastPage=last, currentPage=page, perPage=size, **links))
