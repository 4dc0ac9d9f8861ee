"""Messages: accept one, find them, ask why, and what a person may do to them."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.caller import current
from ...access.rules import OPERATE, READ, SEND, allowed
from ...model.errors import Invalid
from ...model.time import iso
from ...outbound.desk import Desk
from ...outbound.drafts import FIELDS, WHEN, Reading
from ...outbound.story import actions
from ...reading.fields import Field
from ...reading.when import echo
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields, read_json, takes
from ..queries import CHECKED, After

REASON = {"reason": Field("string", "kept in the history", "ordered twice")}


def routes(desk: Desk, zone: ZoneInfo) -> APIRouter:
    """Everything under /v1/messages but the bulk call."""
    router = APIRouter(prefix="/v1/messages", tags=["messages"], responses=PROBLEMS)

    def reading() -> Reading:
        return Reading(now=desk.clock.now(), zone=zone, tenant=current().tenant)

    @router.post("", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT)
    @allowed(SEND)
    async def accept(request: Request) -> Response:
        """Accept one message. With an Idempotency-Key the same call can be repeated safely."""
        body, read = await read_json(request), reading()
        key = request.headers.get("idempotency-key")
        accepted = await desk.messages.accept(read.draft(body, keep=key is not None), key=key)
        told = {
            "id": accepted.id,
            "state": "pending",
            "at": iso(accepted.at),
            "when": echo(accepted.at, zone, now=read.now),
        }
        headers = {"location": f"/v1/messages/{accepted.id}"}
        if accepted.replayed:
            headers["idempotency-replayed"] = "true"
        return answer(told, 201, headers)

    @router.get("", dependencies=CHECKED)
    @allowed(READ)
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
        return answer(found._asdict())

    @router.get("/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One message with its standing, its times and its whole history."""
        return answer(_acted(await desk.messages.show(id)))

    @router.get("/{id}/why", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def why(id: str) -> Response:
        """What it waits for, or what became of it, in one sentence."""
        found = await desk.why(id)
        return answer({"id": id, "why": found.answer, "until": iso(found.until), "remedy": found.remedy})

    @router.post("/{id}/cancel", responses=MISSING | CONFLICT, openapi_extra=takes(REASON, required=False))
    @allowed(SEND)
    async def cancel(id: str, request: Request) -> Response:
        """Cancel what waits. What is being sent is asked: it ends as cancelled unless it was sent."""
        given = await read_fields(request, REASON)
        return answer(
            _acted(await desk.messages.cancel(id, reason=given.get("reason") or "cancelled by hand"))
        )

    @router.post("/{id}/retry", responses=MISSING | CONFLICT, openapi_extra=takes(WHEN, required=False))
    @allowed(OPERATE)
    async def retry(id: str, request: Request) -> Response:
        """Start a dead letter afresh, with all its tries."""
        at = reading().when(await read_fields(request, WHEN))
        return answer(_acted(await desk.messages.retry(id, at=at)))

    @router.post("/{id}/reschedule", responses=MISSING | CONFLICT, openapi_extra=takes(WHEN))
    @allowed(SEND)
    async def reschedule(id: str, request: Request) -> Response:
        """Another time for what has not begun."""
        read = reading()
        at = read.when(await read_fields(request, WHEN))
        if at is None:
            raise Invalid(
                "no time is given", field="at", remedy='write {"at": "tomorrow 9am"} or {"in": "10 min"}'
            )
        moved = await desk.messages.reschedule(id, at)
        return answer(_acted(moved) | {"when": echo(at, zone, now=read.now)})

    @router.post("/{id}/discard", responses=MISSING | CONFLICT)
    @allowed(OPERATE)
    async def discard(id: str, request: Request) -> Response:
        """Give a dead letter up."""
        await read_fields(request, {})
        return answer(_acted(await desk.messages.discard(id)))

    return router


def _acted(message: dict[str, Any]) -> dict[str, Any]:
    """The message with what may be done to it now."""
    return {**message, "actions": actions(message["state"])}
