"""Upcoming messages, schedule runs and broadcasts: one week, or one day with its messages by time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from operator import itemgetter
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from ...app import App
from ...inputs.timezones import resolve_wall_time
from ...model.errors import Invalid
from ...model.time import moment
from ...outbound.upcoming import UpcomingSpan
from ...store.port import Row
from ..renderer import PageRenderer, ViewRoute

DAYS = 7
LISTED = 100
MAX_DISTANCE = timedelta(days=3660)


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the upcoming routes."""
    service = app.outbound

    def today() -> date:
        return moment(renderer.clock.now()).astimezone(renderer.timezone).date()

    async def week(request: Request) -> Response:
        """Show seven days, starting today or at `from`."""
        first = _day(request.query_params.get("from") or today().isoformat(), today())
        dates = [first + timedelta(days=number) for number in range(DAYS + 1)]
        plans = await service.ahead.plans([_midnight(day, renderer.timezone) for day in dates])
        days = list(zip(dates, plans.spans, strict=False))
        return renderer.page(
            "upcoming.html",
            days=days,
            today=today(),
            most=max((_size(span) for span in plans.spans), default=0),
            size=_size,
            entries=_entries,
            more_schedules=plans.more_schedules,
            earlier=max(first - timedelta(days=DAYS), today() - MAX_DISTANCE),
            later=first + timedelta(days=DAYS),
        )

    async def show(request: Request) -> Response:
        """Show one day: schedule runs, broadcasts and messages."""
        day = _day(request.path_params["day"], today())
        begin, end = _midnight(day, renderer.timezone), _midnight(day + timedelta(days=1), renderer.timezone)
        since = max(begin, _since(request.query_params.get("since"), begin))
        plans = await service.ahead.plans([begin, end])
        listed = await service.ahead.messages(since, end, limit=LISTED)
        return renderer.page(
            "upcoming_day.html",
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

    return [ViewRoute("GET", "/upcoming", week), ViewRoute("GET", "/upcoming/{day}", show)]


def _size(span: UpcomingSpan) -> int:
    """Return the number of entries of one day, for its bar."""
    return span.messages + sum(len(firing["at"]) for firing in span.firings) + len(span.broadcasts)


def _entries(span: UpcomingSpan) -> list[Row]:
    """Return schedule runs and broadcasts, ordered by time."""
    times = [(firing["at"][0], firing) for firing in span.firings if firing["at"]]
    times += [(broadcast["starts_at"], broadcast) for broadcast in span.broadcasts]
    return [plan for _, plan in sorted(times, key=itemgetter(0))]


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a date", field="from", remedy=f"use a date such as {today}") from None
    if abs(day - today) > MAX_DISTANCE:
        raise Invalid(f"{day} is more than ten years away", field="from", remedy=f"use a date such as {today}")
    return day


def _midnight(day: date, timezone: ZoneInfo) -> int:
    """Return when a day starts in a time zone, also where the clock change skips midnight."""
    return resolve_wall_time(datetime.combine(day, time()), timezone).at


def _since(text: str | None, usual: int) -> int:
    if text is None or not text.isdecimal() or len(text) > 17:
        return usual
    return int(text)
