"""The shift calendar: a week of it, what was asked of it, changes by hand, undoing, and its feed."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.desk import AccessDesk
from ...access.rules import OPEN, OPERATE, READ, allowed
from ...inbound.calendar.desk import CHANGE, ShiftDesk
from ...reading.fields import Field
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, gives, read_fields, takes
from ..credentials import shown
from ..errors import Unauthorised, id_of
from ..gate import FEED, authenticate, origin_of
from ..queries import CHECKED, After

UNDO = {"who": Field("string", "who asks, for the history", "Ada")}


def routes(shifts: ShiftDesk, access: AccessDesk, *, feed_token: str | None) -> APIRouter:
    """Everything under /v1/calendar, and the feed; `{change}` is a change's id."""
    router = APIRouter(tags=["calendar"], responses=PROBLEMS)

    @router.get("/v1/calendar", dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def week(
        week: Annotated[
            str | None, Query(description="such as 2027-W03, or a day of it; else this one")
        ] = None,
    ) -> Response:
        """A week: the shifts of each squad by the day they start, and when nobody has a crew."""
        return answer(await shifts.week(week))

    @router.get("/v1/calendar/changes", dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def changes(
        day: Annotated[str | None, Query(description="only of this day")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """What was asked of the calendar and what came of it, newest first."""
        return answer((await shifts.changes(day=day, limit=limit, after=after))._asdict())

    @router.get("/v1/calendar/changes/{change}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def show(change: str) -> Response:
        """One change, with the evidence of each step."""
        return answer(await shifts.show(change))

    @router.post("/v1/calendar/changes", status_code=202, openapi_extra=takes(CHANGE, keyed=True))
    @allowed(OPERATE, whole=True)
    async def ask(request: Request) -> Response:
        """Ask for a change. It is planned when this answers, and done when its state is `confirmed`."""
        given = await read_fields(request, CHANGE)
        made = await shifts.change(given, key=request.headers.get("idempotency-key"))
        return answer(made, 202, {"location": f"/v1/calendar/changes/{made['id']}"})

    @router.post(
        "/v1/calendar/changes/{change}/undo",
        status_code=202,
        responses=MISSING | CONFLICT,
        openapi_extra=takes(UNDO, required=False),
    )
    @allowed(OPERATE, whole=True)
    async def undo(change: str, request: Request) -> Response:
        """Bring back what the calendar said before, unless it was changed since."""
        given = await read_fields(request, UNDO)
        return answer({"items": await shifts.undo(change, who=given.get("who") or "by hand")}, 202)

    @router.get(
        FEED, dependencies=CHECKED, response_class=Response, responses=MISSING | gives("text/calendar")
    )
    @allowed(OPEN)
    async def feed(
        request: Request,
        squad: Annotated[str | None, Query(description="only this squad's shifts")] = None,
        token: Annotated[str | None, Query(description="the setting feed_token, instead of a key")] = None,
    ) -> Response:
        """The shifts as an iCalendar feed, to be subscribed to."""
        address, known = origin_of(request.scope), False
        if feed_token is not None and token is not None:
            access.failures.check(address, token)
            if known := _is_same(token, feed_token):
                access.failures.passed(address, token)
            else:
                access.failures.failed(address, token, where="feed", request=id_of(request))
        shows = shown(dict(request.scope["headers"]))
        caller = None if known else await authenticate(access, shows, request.scope)
        if not known and (caller is None or not caller.may(READ, area="calendar", whole=True)):
            remedy = "add ?token= with the setting feed_token, or show an API key"
            raise Unauthorised("this feed needs its token", remedy=remedy)
        return Response(await shifts.feed(squad), media_type="text/calendar; charset=utf-8")

    return router


def _is_same(given: str | None, own: str | None) -> bool:
    return hmac.compare_digest((given or "").encode(), (own or "").encode())
