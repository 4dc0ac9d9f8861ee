"""Messages: send, list, show, explain, cancel, retry, reschedule, discard."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE, READ, SEND, requires
from ...inputs.natural_times import describe_time
from ...model.errors import Invalid
from ...model.time import iso
from ...outbound.draft_parser import MESSAGE_FIELDS, TIME_FIELDS, DraftParser
from ...outbound.idempotency import CreateResult
from ...outbound.message_actions import allowed_actions
from ...outbound.service import OutboundService
from ..bodies import REASON, created_response, json_response, page_response, read_fields, read_json, read_reason
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, action_options, create_options
from ..query_parameters import STRICT_QUERY, After


def routes(outbound: OutboundService, timezone: ZoneInfo) -> APIRouter:
    """Return the routes under /v1/messages, except the bulk call."""
    router = APIRouter(prefix="/v1/messages", tags=["messages"], responses=ERROR_RESPONSES)

    def draft_parser() -> DraftParser:
        return DraftParser(now=outbound.clock.now(), timezone=timezone, tenant=current_caller().tenant)

    @router.post("", **create_options(MESSAGE_FIELDS))
    @requires(SEND)
    async def accept(request: Request) -> Response:
        """Send a message, now or later. An Idempotency-Key makes retries safe."""
        body, parser = await read_json(request), draft_parser()
        key = request.headers.get("idempotency-key")
        accepted = await outbound.messages.accept(parser.draft(body, keep=key is not None), key=key)
        response = {
            "id": accepted.id,
            "state": "pending",
            "at": iso(accepted.at),
            "when": describe_time(accepted.at, timezone, now=parser.now),
        }
        return created_response(CreateResult(response, accepted.replayed), f"/v1/messages/{accepted.id}")

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
        """List messages, newest first. A page can be short; only `next: null` marks the end."""
        return page_response(
            await outbound.messages.page(state=state, channel=channel, to=to, unknown=unknown, limit=limit, after=after)
        )

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one message with its state, times and history."""
        return json_response(_with_actions(await outbound.messages.show(id)))

    @router.get("/{id}/why", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def why(id: str) -> Response:
        """Explain in one sentence what a message is waiting for, or how it ended."""
        found = await outbound.why(id)
        return json_response({"id": id, "why": found.answer, "until": iso(found.until), "remedy": found.remedy})

    @router.post("/{id}/cancel", **action_options(REASON))
    @requires(SEND)
    async def cancel(id: str, request: Request) -> Response:
        """Cancel a message. One that is being sent is cancelled unless this attempt delivers it."""
        reason = await read_reason(request, "cancelled by hand")
        return json_response(_with_actions(await outbound.messages.cancel(id, reason=reason)))

    @router.post("/{id}/retry", **action_options(TIME_FIELDS))
    @requires(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Retry a dead letter with all its attempts."""
        at = draft_parser().due(await read_fields(request, TIME_FIELDS))
        return json_response(_with_actions(await outbound.messages.retry(id, at=at)))

    @router.post("/{id}/reschedule", **action_options(TIME_FIELDS, required=True))
    @requires(SEND)
    async def reschedule(id: str, request: Request) -> Response:
        """Change the time of a pending message."""
        parser = draft_parser()
        at = parser.due(await read_fields(request, TIME_FIELDS))
        if at is None:
            raise Invalid("at is missing", field="at", remedy='write {"at": "tomorrow 9am"} or {"in": "10 min"}')
        moved = await outbound.messages.reschedule(id, at)
        return json_response(_with_actions(moved) | {"when": describe_time(at, timezone, now=parser.now)})

    @router.post("/{id}/discard", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE)
    async def discard(id: str, request: Request) -> Response:
        """Discard a dead letter."""
        await read_fields(request, {})
        return json_response(_with_actions(await outbound.messages.discard(id)))

    return router


def _with_actions(message: dict[str, Any]) -> dict[str, Any]:
    """Add the actions that the current state allows."""
    return {**message, "actions": allowed_actions(message["state"])}
