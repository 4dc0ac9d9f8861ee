"""Schedules: rules that make messages or broadcasts at instants; what they will do, and what they did."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND, requires
from ...outbound.schedules.request_parser import PREVIEW_FIELDS, SCHEDULE_CHANGES, SCHEDULE_FIELDS
from ...outbound.service import OutboundService
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_fields,
    read_json,
)
from ..query_parameters import STRICT_QUERY, After


def routes(desk: OutboundService, timezone: ZoneInfo) -> APIRouter:
    """Everything under /v1/schedules; `zone` is for rules that name none."""
    router = APIRouter(prefix="/v1/schedules", tags=["schedules"], responses=ERROR_RESPONSES)

    @router.post(
        "", status_code=201, openapi_extra=body_schema(SCHEDULE_FIELDS, keyed=True), responses=CONFLICT
    )
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Make a schedule. With an Idempotency-Key the same call can be repeated safely."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.schedules.create(body, timezone=timezone, key=key)
        return created_response(made, f"/v1/schedules/{made.answer['id']}")

    @router.post(":preview", openapi_extra=body_schema(PREVIEW_FIELDS))
    @requires(READ)
    async def foresee(request: Request) -> Response:
        """The next firings of a rule, without saving it."""
        return json_response(desk.schedules.foresee(await read_json(request), timezone=timezone))

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(state: str | None = None, limit: int = 50, after: After = None) -> Response:
        """Schedules, newest first."""
        return json_response((await desk.schedules.page(state=state, limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One schedule with its rule in words, its last and its next run."""
        return json_response(await desk.schedules.show(id))

    @router.patch("/{id}", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(SCHEDULE_CHANGES))
    @requires(OPERATE)
    async def edit(id: str, request: Request) -> Response:
        """Change some fields; null takes one away. Takes effect at once."""
        return json_response(await desk.schedules.edit(id, await read_json(request)))

    @router.delete("/{id}", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def remove(id: str, request: Request) -> Response:
        """End it and forget it, with its log. What it has made stays."""
        await read_fields(request, {})
        return json_response(await desk.schedules.remove(id))

    @router.post("/{id}/pause", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def pause(id: str, request: Request) -> Response:
        """Make nothing until it is resumed."""
        await read_fields(request, {})
        return json_response(await desk.schedules.pause(id))

    @router.post("/{id}/resume", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def resume(id: str, request: Request) -> Response:
        """Go on with the next instant from now; what fell into the pause is not made up for."""
        await read_fields(request, {})
        return json_response(await desk.schedules.resume(id))

    @router.post("/{id}/end", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def end(id: str, request: Request) -> Response:
        """Make nothing more; the log stays."""
        await read_fields(request, {})
        return json_response(await desk.schedules.end(id))

    @router.post(
        "/{id}/run",
        status_code=201,
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema({}, required=False, keyed=True),
    )
    @requires(SEND)
    async def run(id: str, request: Request) -> Response:
        """Make it once now, beside its rule."""
        await read_fields(request, {})
        return created_response(await desk.schedules.run(id, key=request.headers.get("idempotency-key")))

    @router.get("/{id}/preview", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def preview(id: str, n: int = 10) -> Response:
        """The next firings, in UTC and in its own zone, with a note where the clocks change."""
        return json_response({"items": await desk.schedules.preview(id, n)})

    @router.get("/{id}/occurrences", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def occurrences(id: str, limit: int = 50, after: After = None) -> Response:
        """The log: what became of each occurrence, newest first."""
        return json_response((await desk.schedules.occurrences(id, limit=limit, after=after))._asdict())

    return router
