"""Schedules of recurring messages and broadcasts, previews, occurrences."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND, requires
from ...outbound.contacts.uploads import read_rows, upload_format
from ...outbound.schedules.bulk_actions import ACTIONS
from ...outbound.schedules.request_parser import PREVIEW_FIELDS, SCHEDULE_CHANGES, SCHEDULE_FIELDS
from ...outbound.schedules.schedule_filters import SELECTION_FIELDS
from ...outbound.service import OutboundService
from ..bodies import created_response, json_response, page_response, read_fields, read_json
from ..body_limits import reject_oversized_upload
from ..ndjson_streams import NDJSON, UPLOAD
from ..openapi_responses import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    action_options,
    body_schema,
    content_options,
    create_options,
)
from ..query_parameters import STRICT_QUERY, After, State, reject_query
from .bulk import bulk_response

BULK = "/v1/schedules:bulk"


def routes(outbound: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """Return the routes under /v1/schedules; `timezone` applies to rules without one."""
    router = APIRouter(prefix="/v1/schedules", tags=["schedules"], responses=ERROR_RESPONSES)
    _bulk_routes(router, outbound, timezone, largest=largest, most=most)

    @router.post("", **create_options(SCHEDULE_FIELDS))
    @requires(SEND)
    async def create(request: Request) -> Response:
        """Create a schedule. An Idempotency-Key makes retries safe."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.schedules.create(body, timezone=timezone, key=key)
        return created_response(made, f"/v1/schedules/{made.answer['id']}")

    @router.post(":preview", openapi_extra=body_schema(PREVIEW_FIELDS))
    @requires(READ)
    async def foresee(request: Request) -> Response:
        """Preview the next occurrences of a rule without saving it."""
        return json_response(outbound.schedules.foresee(await read_json(request), timezone=timezone))

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: State = None,
        channel: str | None = None,
        to: str | None = None,
        timezone: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List schedules, newest first. A page can be short; only `next: null` marks the end."""
        found = await outbound.schedules.page(
            state=state, channel=channel, to=to, timezone=timezone, name=name, tag=tag, limit=limit, after=after
        )
        return page_response(found)

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one schedule with its rule in words, last and next run."""
        return json_response(await outbound.schedules.show(id))

    @router.patch("/{id}", **action_options(SCHEDULE_CHANGES, required=True))
    @requires(OPERATE)
    async def edit(id: str, request: Request) -> Response:
        """Update the given fields; null removes a value. Takes effect immediately."""
        return json_response(await outbound.schedules.edit(id, await read_json(request)))

    @router.delete("/{id}", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def remove(id: str, request: Request) -> Response:
        """Delete a schedule and its log. Created messages stay."""
        await read_fields(request, {})
        return json_response(await outbound.schedules.remove(id))

    @router.post("/{id}/pause", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def pause(id: str, request: Request) -> Response:
        """Pause a schedule."""
        await read_fields(request, {})
        return json_response(await outbound.schedules.pause(id))

    @router.post("/{id}/resume", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def resume(id: str, request: Request) -> Response:
        """Resume with the next occurrence from now; occurrences during the pause are skipped."""
        await read_fields(request, {})
        return json_response(await outbound.schedules.resume(id))

    @router.post("/{id}/end", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def end(id: str, request: Request) -> Response:
        """End a schedule; its log stays."""
        await read_fields(request, {})
        return json_response(await outbound.schedules.end(id))

    @router.post(
        "/{id}/run",
        status_code=201,
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema({}, required=False, keyed=True),
    )
    @requires(SEND)
    async def run(id: str, request: Request) -> Response:
        """Run a schedule once now, in addition to its rule."""
        await read_fields(request, {})
        return created_response(await outbound.schedules.run(id, key=request.headers.get("idempotency-key")))

    @router.get("/{id}/preview", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def preview(id: str, n: int = 10) -> Response:
        """Preview the next occurrences in UTC and local time, with a note at clock changes."""
        return json_response({"items": await outbound.schedules.preview(id, n)})

    @router.get("/{id}/occurrences", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def occurrences(id: str, limit: int = 50, after: After = None) -> Response:
        """List past occurrences with their results, newest first."""
        return page_response(await outbound.schedules.occurrences(id, limit=limit, after=after))

    return router


def _bulk_routes(router: APIRouter, outbound: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> None:
    @router.post(":bulk", openapi_extra=UPLOAD, **content_options(NDJSON))
    @requires(SEND)
    async def create_many(request: Request) -> Response:
        """Create many schedules from CSV or NDJSON: one result per row, and a summary at the end."""
        reject_query(request)
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        rows = read_rows(request.stream(), form, largest=largest, most_lines=most)
        key = request.headers.get("idempotency-key")
        return await bulk_response(request, outbound.schedule_bulk.create_many(rows, timezone=timezone, key=key))

    def action_route(action: str) -> None:
        @router.post(f":{action}", name=f"{action}_many", **action_options(SELECTION_FIELDS, required=True))
        @requires(OPERATE)
        async def change_many(request: Request) -> Response:
            body = await read_json(request)
            return json_response((await outbound.schedule_bulk.change(action, body))._asdict())

        change_many.__doc__ = f"{action.capitalize()} all schedules that match a filter; `dry_run` only counts them."

    for action in ACTIONS:
        action_route(action)
