"""Messages: accept one, find them, ask why, and what a person may do to them."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE, READ, SEND, requires
from ...inputs.fields import Field
from ...inputs.natural_times import describe_time
from ...model.errors import Invalid
from ...model.time import iso
from ...outbound.draft_parser import MESSAGE_FIELDS, TIME_FIELDS, DraftParser
from ...outbound.message_actions import allowed_actions
from ...outbound.service import OutboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields, read_json
from ..query_parameters import STRICT_QUERY, After

REASON = {"reason": Field("string", "kept in the history", "ordered twice")}


def routes(desk: OutboundService, timezone: ZoneInfo) -> APIRouter:
    """Everything under /v1/messages but the bulk call."""
    router = APIRouter(prefix="/v1/messages", tags=["messages"], responses=ERROR_RESPONSES)

    def reading() -> DraftParser:
        return DraftParser(now=desk.clock.now(), timezone=timezone, tenant=current_caller().tenant)

    @router.post(
        "", status_code=201, openapi_extra=body_schema(MESSAGE_FIELDS, keyed=True), responses=CONFLICT
    )
    @requires(SEND)
    async def accept(request: Request) -> Response:
        """Accept one message. With an Idempotency-Key the same call can be repeated safely."""
        body, read = await read_json(request), reading()
        key = request.headers.get("idempotency-key")
        accepted = await desk.messages.accept(read.draft(body, keep=key is not None), key=key)
        told = {
            "id": accepted.id,
            "state": "pending",
            "at": iso(accepted.at),
            "when": describe_time(accepted.at, timezone, now=read.now),
        }
        headers = {"location": f"/v1/messages/{accepted.id}"}
        if accepted.replayed:
            headers["idempotency-replayed"] = "true"
        return json_response(told, 201, headers)

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: str | None = None,
        channel: str | None = None,
        to: str | None = None,
        unknown: bool | None = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Messages, newest first. A page may be short before the end; `next` is null only there."""
        found = await desk.messages.page(
            state=state, channel=channel, to=to, unknown=unknown, limit=limit, after=after
        )
        return json_response(found._asdict())

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One message with its standing, its times and its whole history."""
        return json_response(_acted(await desk.messages.show(id)))

    @router.get("/{id}/why", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def why(id: str) -> Response:
        """What it waits for, or what became of it, in one sentence."""
        found = await desk.why(id)
        return json_response(
            {"id": id, "why": found.answer, "until": iso(found.until), "remedy": found.remedy}
        )

    @router.post(
        "/{id}/cancel", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(REASON, required=False)
    )
    @requires(SEND)
    async def cancel(id: str, request: Request) -> Response:
        """Cancel what waits. What is being sent is asked: it ends as cancelled unless it was sent."""
        given = await read_fields(request, REASON)
        return json_response(
            _acted(await desk.messages.cancel(id, reason=given.get("reason") or "cancelled by hand"))
        )

    @router.post(
        "/{id}/retry", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(TIME_FIELDS, required=False)
    )
    @requires(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Start a dead letter afresh, with all its tries."""
        at = reading().when(await read_fields(request, TIME_FIELDS))
        return json_response(_acted(await desk.messages.retry(id, at=at)))

    @router.post("/{id}/reschedule", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(TIME_FIELDS))
    @requires(SEND)
    async def reschedule(id: str, request: Request) -> Response:
        """Another time for what has not begun."""
        read = reading()
        at = read.when(await read_fields(request, TIME_FIELDS))
        if at is None:
            raise Invalid(
                "no time is given", field="at", remedy='write {"at": "tomorrow 9am"} or {"in": "10 min"}'
            )
        moved = await desk.messages.reschedule(id, at)
        return json_response(_acted(moved) | {"when": describe_time(at, timezone, now=read.now)})

    @router.post("/{id}/discard", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def discard(id: str, request: Request) -> Response:
        """Give a dead letter up."""
        await read_fields(request, {})
        return json_response(_acted(await desk.messages.discard(id)))

    return router


def _acted(message: dict[str, Any]) -> dict[str, Any]:
    """The message with what may be done to it now."""
    return {**message, "actions": allowed_actions(message["state"])}
