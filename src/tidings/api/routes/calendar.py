"""The shift calendar: weeks, changes, undo, and the iCalendar feed."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPEN, OPERATE, READ, requires
from ...access.service import AccessService
from ...inbound.calendar.service import CHANGE, CalendarService
from ...inputs.fields import Field
from ..authentication import authenticate, client_address_of, read_credentials
from ..bodies import json_response, page_response, read_fields
from ..errors import Unauthorized, request_id_of
from ..middleware import CALENDAR_FEED_PATH
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, action_options, body_schema, content_options
from ..query_parameters import STRICT_QUERY, After

UNDO = {"who": Field("string", "who requests it, for the history", "Ada")}


def routes(shifts: CalendarService, access: AccessService, *, feed_token: str | None) -> APIRouter:
    """Return the routes under /v1/calendar and the feed; `{change}` is the id of a change."""
    router = APIRouter(tags=["calendar"], responses=ERROR_RESPONSES)

    @router.get("/v1/calendar", dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def week(
        week: Annotated[str | None, Query(description="Week such as 2027-W03, or a day in it.")] = None,
    ) -> Response:
        """Show one week: shifts by squad and start day, and the hours without a crew."""
        return json_response(await shifts.week(week))

    @router.get("/v1/calendar/changes", dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def changes(
        day: Annotated[str | None, Query(description="Filter by day.")] = None, limit: int = 50, after: After = None
    ) -> Response:
        """List requested changes with their results, newest first."""
        return page_response(await shifts.changes(day=day, limit=limit, after=after))

    @router.get("/v1/calendar/changes/{change}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def show(change: str) -> Response:
        """Show one change with the evidence of each step."""
        return json_response(await shifts.show(change))

    @router.post("/v1/calendar/changes", status_code=202, openapi_extra=body_schema(CHANGE, keyed=True))
    @requires(OPERATE, engine_wide=True)
    async def request_change(request: Request) -> Response:
        """Request a change. The response means planned; the change is done when its state is `confirmed`."""
        given = await read_fields(request, CHANGE)
        made = await shifts.change(given, key=request.headers.get("idempotency-key"))
        return json_response(made, 202, {"location": f"/v1/calendar/changes/{made['id']}"})

    @router.post("/v1/calendar/changes/{change}/undo", status_code=202, **action_options(UNDO))
    @requires(OPERATE, engine_wide=True)
    async def undo(change: str, request: Request) -> Response:
        """Undo a change, unless the calendar has been changed since."""
        given = await read_fields(request, UNDO)
        return json_response({"items": await shifts.undo(change, who=given.get("who") or "by hand")}, 202)

    @router.get(CALENDAR_FEED_PATH, dependencies=STRICT_QUERY, **content_options("text/calendar", errors=NOT_FOUND))
    @requires(OPEN)
    async def feed(
        request: Request,
        squad: Annotated[str | None, Query(description="Filter by squad.")] = None,
        token: Annotated[str | None, Query(description="The setting feed_token, instead of a key.")] = None,
    ) -> Response:
        """Return the shifts as an iCalendar feed."""
        address, known = client_address_of(request.scope), False
        if feed_token is not None and token is not None:
            access.failed_logins.check(address, token)
            if known := hmac.compare_digest(token.encode(), feed_token.encode()):
                access.failed_logins.passed(address, token)
            else:
                access.failed_logins.failed(address, token, where="feed", request=request_id_of(request))
        credentials = read_credentials(dict(request.scope["headers"]))
        caller = None if known else await authenticate(access, credentials, request.scope)
        if not known and (caller is None or not caller.may(READ, area="calendar", engine_wide=True)):
            remedy = "add ?token= with the setting feed_token, or send an API key"
            raise Unauthorized("the feed token is missing or wrong", remedy=remedy)
        return Response(await shifts.feed(squad), media_type="text/calendar; charset=utf-8")

    return router
