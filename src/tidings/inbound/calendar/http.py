"""A remote shift calendar with a command API, in which a GET writes and errors have HTTP status 200.

`preview` is always sent, because it defaults to true and then nothing changes. Errors come in two formats. A
success response proves nothing, so commands are verified by reading back. A time off the calendar's grid is
never sent, because the calendar would book the whole day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson
from pyreqwest.http import Url

from ...model.errors import Conflict
from ...wire.http_client import HttpClient, HttpResponse, MaybeSent, NotSent, resolve_host
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, Resolve, SsrfGuard, UnresolvedHost
from ..domain import CalendarAnswer, CalendarCommand, CalendarDay, ShiftAction, half_hours
from .day_grid import command_problem
from .port import CalendarOutcomeUnknown, CalendarUnavailable
from .settings import CalendarSettings

WORDS: Mapping[ShiftAction, str] = {
    ShiftAction.NO_CREW: "noCrew",
    ShiftAction.ADD: "addShift",
    ShiftAction.REMOVE: "obliterateShift",
}
MAX_ANSWER = 1 << 20
AT_ONCE = 4  # days read concurrently


class HttpCalendar:
    """A shift calendar over HTTP."""

    weeks = (1, 2)

    def __init__(self, settings: CalendarSettings, *, now: Callable[[], int], look_up: Resolve | None = None) -> None:
        assert settings.url is not None
        self.name = settings.name
        self.grid = settings.grid
        self._url = settings.url
        self._token = settings.token
        self._deadline = settings.deadline
        self._now = now
        third = settings.deadline / 3  # leaves the rest for the response
        self._guard = SsrfGuard(settings.rules, look_up or partial(resolve_host, within=third))
        self._http = HttpClient(connect_within=third)

    async def day(self, date: str) -> CalendarDay:
        """Read one operational day."""
        said = await self._read({"action": "get_schedule_day", "date": date})
        problem = problem_of(said)
        if problem is not None:
            raise CalendarUnavailable(f"the calendar did not return {date}: {problem}")
        return _readable(date, said.get("day_schedule"))

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        """Read several days, a few concurrently."""
        room = asyncio.Semaphore(AT_ONCE)

        async def one(date: str) -> CalendarDay:
            async with room:
                return await self.day(date)

        return list(await asyncio.gather(*(one(date) for date in dates)))

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        """Return the day as it would be after the command; raises Conflict if the calendar refuses."""
        said = await self._read({**_asked(command), "preview": "true"})
        problem = problem_of(said)
        if problem is not None:
            raise Conflict(f"the calendar refused: {problem}")
        return _readable(command.date, said.get("modified_grid"))

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        """Send a command. The calendar supports no idempotency keys; the caller verifies by reading back."""
        problem = command_problem(command, grid=self.grid)
        if problem is not None:
            return CalendarAnswer(False, problem)
        try:
            answer = await self._ask({**_asked(command), "preview": "false"})
        except MaybeSent as error:
            raise CalendarOutcomeUnknown(f"no response to a sent command: {error}") from error
        if answer.status == 429:
            raise self._away(answer)
        if answer.status >= 500:
            raise CalendarOutcomeUnknown(f"the calendar answered {answer.status} to a command")
        if answer.status != 200:
            shown = answer.shown(hide=(self._token,) if self._token else ())
            return CalendarAnswer(False, f"HTTP {answer.status}: {shown}")
        said = _object(answer)
        if said is None:
            raise CalendarOutcomeUnknown("the calendar's response to a command is unreadable")
        problem, change = problem_of(said), said.get("changeId")
        if problem is not None and change is not None:  # it had begun to write
            raise CalendarOutcomeUnknown(f"the calendar reports a failed write, change {str(change)[:64]}: {problem}")
        return CalendarAnswer(problem is None, problem or f"change {change}")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _read(self, params: Mapping[str, str]) -> Mapping[str, Any]:
        """Send a request that changes nothing."""
        try:
            answer = await self._ask(params)
        except MaybeSent as error:
            raise CalendarUnavailable(f"the calendar did not answer: {error}") from error
        if answer.status != 200:
            raise self._away(answer)
        said = _object(answer)
        if said is None:
            raise CalendarUnavailable("the calendar's response is unreadable")
        return said

    async def _ask(self, params: Mapping[str, str]) -> HttpResponse:
        try:
            admitted = self._guard.known(self._url) or await self._guard.admit(self._url)
            return await self._http.request(
                "GET",
                Url(f"{self._url}?{urlencode(params)}"),
                headers={"authorization": f"Bearer {self._token}"} if self._token else {},
                deadline=self._deadline,
                pinned=admitted.pin(1),
                max_response_size=MAX_ANSWER,
            )
        except (ForbiddenUrl, UnresolvedHost, NotSent) as error:
            raise CalendarUnavailable(f"the calendar could not be called: {error}") from error

    def _away(self, answer: HttpResponse) -> CalendarUnavailable:
        after: timedelta | None = None
        if answer.status == 429:
            after = retry_after(answer.header("retry-after"), now=self._now())
        return CalendarUnavailable(f"the calendar answered {answer.status}", after=after)


def problem_of(said: Mapping[str, Any]) -> str | None:
    """Return the error in either of its two formats; None only for an explicit success."""
    if said.get("success") is True and said.get("status") != "error":
        return None
    return str(said.get("error") or said.get("message") or "no success reported")[:500]


def read_day(date: str, schedule: Mapping[str, Any]) -> CalendarDay:
    """Parse the calendar's format of a day; raises KeyError, TypeError or ValueError."""
    crewed: dict[str, set[int]] = {}
    no_crew: dict[str, set[int]] = {}
    for shift in schedule["shifts"]:
        for segment in shift["segments"]:
            slots = half_hours(*(segment[name].replace(":", "") for name in ("start_time", "end_time")))
            for squad in segment["squads"]:
                lines = crewed if squad.get("active", True) else no_crew
                lines.setdefault(str(squad["id"]), set()).update(slots)
    return CalendarDay(
        date,
        {squad: frozenset(slots) for squad, slots in crewed.items()},
        schedule,
        {squad: frozenset(slots - crewed.get(squad, set())) for squad, slots in no_crew.items()},
    )


def _readable(date: str, schedule: object) -> CalendarDay:
    """Parse a day given as an object or as a JSON string; raises CalendarUnavailable."""
    try:
        found = orjson.loads(schedule) if isinstance(schedule, str) else schedule
        return read_day(date, found)  # type: ignore[arg-type]  # parsing validates it
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"the calendar's day {date} is unreadable ({type(error).__name__})"
        raise CalendarUnavailable(problem) from error


def _asked(command: CalendarCommand) -> dict[str, str]:
    return {
        "action": WORDS[command.action],
        "date": command.date,
        "shift_start": command.start,
        "shift_end": command.end,
        "squad": command.squad,
    }


def _object(answer: HttpResponse) -> Mapping[str, Any] | None:
    try:
        found = orjson.loads(answer.body_prefix)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
