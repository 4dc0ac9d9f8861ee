"""Going out: a week of what is planned, and one day with its messages in the order of their time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from operator import itemgetter
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from ...inputs.timezones import resolve_wall_time
from ...model.errors import Invalid
from ...model.time import moment
from ...outbound.service import OutboundService
from ...outbound.upcoming import UpcomingSpan
from ...store.port import Row
from ..renderer import PageRenderer, ViewRoute

DAYS = 7
LISTED = 100
FARTHEST = timedelta(days=3660)


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    def today() -> date:
        return moment(frame.clock.now()).astimezone(frame.timezone).date()

    async def week(request: Request) -> Response:
        """Seven days from one on; today, unless the address names another."""
        first = _day(request.query_params.get("from") or today().isoformat(), today())
        dates = [first + timedelta(days=number) for number in range(DAYS + 1)]
        plans = await desk.ahead.plans([_midnight(day, frame.timezone) for day in dates])
        days = list(zip(dates, plans.spans, strict=False))
        return frame.page(
            "ahead.html",
            days=days,
            today=today(),
            most=max((_size(span) for span in plans.spans), default=0),
            size=_size,
            entries=_entries,
            more_schedules=plans.more_schedules,
            earlier=max(first - timedelta(days=DAYS), today() - FARTHEST),
            later=first + timedelta(days=DAYS),
        )

    async def show(request: Request) -> Response:
        """One day: what fires, what starts, and its messages."""
        day = _day(request.path_params["day"], today())
        begin, end = _midnight(day, frame.timezone), _midnight(day + timedelta(days=1), frame.timezone)
        since = max(begin, _place(request.query_params.get("since"), begin))
        plans = await desk.ahead.plans([begin, end])
        listed = await desk.ahead.messages(since, end, limit=LISTED)
        return frame.page(
            "ahead_day.html",
            day=day,
            span=plans.spans[0],
            entries=_entries,
            items=listed.items,
            more=urlencode({"since": listed.next}) if listed.next else None,
            is_later=since > begin,
            more_schedules=plans.more_schedules,
            earlier=day - timedelta(days=1),
            later=day + timedelta(days=1),
        )

    return [ViewRoute("GET", "/ahead", week), ViewRoute("GET", "/ahead/{day}", show)]


def _size(span: UpcomingSpan) -> int:
    """How much one day has, for the bar that stands for it."""
    return span.messages + sum(len(firing["at"]) for firing in span.firings) + len(span.broadcasts)


def _entries(span: UpcomingSpan) -> list[Row]:
    """What fires and what starts, in the order of its time."""
    times = [(firing["at"][0], firing) for firing in span.firings if firing["at"]]
    times += [(broadcast["starts_at"], broadcast) for broadcast in span.broadcasts]
    return [plan for _, plan in sorted(times, key=itemgetter(0))]


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a day", field="from", remedy=f"write {today}") from None
    if abs(day - today) > FARTHEST:
        raise Invalid(f"{day} is more than ten years away", field="from", remedy=f"write {today}")
    return day


def _midnight(day: date, timezone: ZoneInfo) -> int:
    """When a day begins there, also where the clocks skip midnight."""
    return resolve_wall_time(datetime.combine(day, time()), timezone).at


def _place(text: str | None, usual: int) -> int:
    if text is None or not text.isdecimal() or len(text) > 17:
        return usual
    return int(text)
