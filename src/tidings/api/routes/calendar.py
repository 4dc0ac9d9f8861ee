"""The shift calendar: a week of it, what was asked of it, changes by hand, undoing, and its feed."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPEN, OPERATE, READ, requires
from ...access.service import AccessService
from ...inbound.calendar.service import CHANGE, CalendarService
from ...inputs.fields import Field
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    json_response,
    read_fields,
    response_content,
)
from ..credentials import read_credentials
from ..errors import Unauthorized, request_id_of
from ..middleware import CALENDAR_FEED_PATH, authenticate, client_address_of
from ..query_parameters import STRICT_QUERY, After

UNDO = {"who": Field("string", "who asks, for the history", "Ada")}


def routes(shifts: CalendarService, access: AccessService, *, feed_token: str | None) -> APIRouter:
    """Everything under /v1/calendar, and the feed; `{change}` is a change's id."""
    router = APIRouter(tags=["calendar"], responses=ERROR_RESPONSES)

    @router.get("/v1/calendar", dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def week(
        week: Annotated[
            str | None, Query(description="such as 2027-W03, or a day of it; else this one")
        ] = None,
    ) -> Response:
        """A week: the shifts of each squad by the day they start, and when nobody has a crew."""
        return json_response(await shifts.week(week))

    @router.get("/v1/calendar/changes", dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def changes(
        day: Annotated[str | None, Query(description="only of this day")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """What was asked of the calendar and what came of it, newest first."""
        return json_response((await shifts.changes(day=day, limit=limit, after=after))._asdict())

    @router.get("/v1/calendar/changes/{change}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def show(change: str) -> Response:
        """One change, with the evidence of each step."""
        return json_response(await shifts.show(change))

    @router.post("/v1/calendar/changes", status_code=202, openapi_extra=body_schema(CHANGE, keyed=True))
    @requires(OPERATE, whole=True)
    async def ask(request: Request) -> Response:
        """Ask for a change. It is planned when this answers, and done when its state is `confirmed`."""
        given = await read_fields(request, CHANGE)
        made = await shifts.change(given, key=request.headers.get("idempotency-key"))
        return json_response(made, 202, {"location": f"/v1/calendar/changes/{made['id']}"})

    @router.post(
        "/v1/calendar/changes/{change}/undo",
        status_code=202,
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(UNDO, required=False),
    )
    @requires(OPERATE, whole=True)
    async def undo(change: str, request: Request) -> Response:
        """Bring back what the calendar said before, unless it was changed since."""
        given = await read_fields(request, UNDO)
        return json_response({"items": await shifts.undo(change, who=given.get("who") or "by hand")}, 202)

    @router.get(
        CALENDAR_FEED_PATH,
        dependencies=STRICT_QUERY,
        response_class=Response,
        responses=NOT_FOUND | response_content("text/calendar"),
    )
    @requires(OPEN)
    async def feed(
        request: Request,
        squad: Annotated[str | None, Query(description="only this squad's shifts")] = None,
        token: Annotated[str | None, Query(description="the setting feed_token, instead of a key")] = None,
    ) -> Response:
        """The shifts as an iCalendar feed, to be subscribed to."""
        address, known = client_address_of(request.scope), False
        if feed_token is not None and token is not None:
            access.failures.check(address, token)
            if known := _is_same(token, feed_token):
                access.failures.passed(address, token)
            else:
                access.failures.failed(address, token, where="feed", request=request_id_of(request))
        shows = read_credentials(dict(request.scope["headers"]))
        caller = None if known else await authenticate(access, shows, request.scope)
        if not known and (caller is None or not caller.may(READ, area="calendar", whole=True)):
            remedy = "add ?token= with the setting feed_token, or show an API key"
            raise Unauthorized("this feed needs its token", remedy=remedy)
        return Response(await shifts.feed(squad), media_type="text/calendar; charset=utf-8")

    return router


def _is_same(given: str | None, own: str | None) -> bool:
    return hmac.compare_digest((given or "").encode(), (own or "").encode())
