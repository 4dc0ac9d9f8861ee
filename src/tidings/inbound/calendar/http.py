"""A shift calendar behind an address: a command API in which a GET writes and an error is HTTP 200.

`preview` is always said, because it defaults to true and a command without it changes nothing. Errors come in
two shapes. Success is no proof, so whoever commands reads back; and a time off the calendar's grid is never
sent, because there it books the whole day.
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
from ..domain import HALF_HOURS, CalendarAnswer, CalendarCommand, CalendarDay, ShiftAction, slot
from .day_grid import command_problem
from .port import CalendarOutcomeUnknown, CalendarUnavailable
from .settings import CalendarSettings

WORDS: Mapping[ShiftAction, str] = {
    ShiftAction.NO_CREW: "noCrew",
    ShiftAction.ADD: "addShift",
    ShiftAction.REMOVE: "obliterateShift",
}
MAX_ANSWER = 1 << 20
AT_ONCE = 4  # days read at the same time


class HttpCalendar:
    """`Calendar` over HTTP."""

    weeks = (1, 2)

    def __init__(
        self, settings: CalendarSettings, *, now: Callable[[], int], look_up: Resolve | None = None
    ) -> None:
        assert settings.url is not None
        self.name = settings.name
        self.grid = settings.grid
        self._url = settings.url
        self._token = settings.token
        self._deadline = settings.deadline
        self._now = now
        third = settings.deadline / 3  # as in webhooks: the rest can only be the answer's time
        self._guard = SsrfGuard(settings.rules, look_up or partial(resolve_host, within=third))
        self._http = HttpClient(connect_within=third)

    async def day(self, date: str) -> CalendarDay:
        """One operational day as it is."""
        said = await self._read({"action": "get_schedule_day", "date": date})
        problem = problem_of(said)
        if problem is not None:
            raise CalendarUnavailable(f"the calendar did not show {date}: {problem}")
        return _readable(date, said.get("day_schedule"))

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        """Several days, a few at a time."""
        room = asyncio.Semaphore(AT_ONCE)

        async def one(date: str) -> CalendarDay:
            async with room:
                return await self.day(date)

        return list(await asyncio.gather(*(one(date) for date in dates)))

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        """The day as it would be; raises Refused where the calendar says no."""
        said = await self._read({**_asked(command), "preview": "true"})
        problem = problem_of(said)
        if problem is not None:
            raise Conflict(f"the calendar refused: {problem}")
        return _readable(command.date, said.get("modified_grid"))

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        """Do it. The calendar knows no keys: whether it was done is seen by reading."""
        problem = command_problem(command, grid=self.grid)
        if problem is not None:
            return CalendarAnswer(False, problem)
        try:
            answer = await self._ask({**_asked(command), "preview": "false"})
        except MaybeSent as error:
            raise CalendarOutcomeUnknown(f"no answer after the command left: {error}") from error
        if answer.status == 429:
            raise self._away(answer)
        if answer.status >= 500:
            raise CalendarOutcomeUnknown(f"the calendar answered {answer.status} to a command")
        if answer.status != 200:
            return CalendarAnswer(False, f"HTTP {answer.status}: {answer.shown(hide=self._hidden)}")
        said = _object(answer)
        if said is None:
            raise CalendarOutcomeUnknown("the calendar's answer to a command cannot be read")
        problem = problem_of(said)
        return CalendarAnswer(problem is None, problem or f"change {said.get('changeId')}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()

    async def _read(self, params: Mapping[str, str]) -> Mapping[str, Any]:
        """A question that changes nothing."""
        try:
            answer = await self._ask(params)
        except MaybeSent as error:
            raise CalendarUnavailable(f"the calendar did not answer: {error}") from error
        if answer.status != 200:
            raise self._away(answer)
        said = _object(answer)
        if said is None:
            raise CalendarUnavailable("the calendar's answer cannot be read")
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
            raise CalendarUnavailable(f"the calendar was not asked: {error}") from error

    def _away(self, answer: HttpResponse) -> CalendarUnavailable:
        after: timedelta | None = None
        if answer.status == 429:
            after = retry_after(answer.header("retry-after"), now=self._now())
        return CalendarUnavailable(f"the calendar answered {answer.status}", after=after)

    @property
    def _hidden(self) -> tuple[str, ...]:
        return (self._token,) if self._token else ()


def problem_of(said: Mapping[str, Any]) -> str | None:
    """What went wrong, in either of its two shapes; None only where it says success."""
    if said.get("success") is True and said.get("status") != "error":
        return None
    return str(said.get("error") or said.get("message") or "it did not say success")[:500]


def read_day(date: str, schedule: Mapping[str, Any]) -> CalendarDay:
    """The calendar's own form of a day; raises KeyError, TypeError or ValueError for what it is not."""
    crewed: dict[str, set[int]] = {}
    no_crew: dict[str, set[int]] = {}
    for shift in schedule["shifts"]:
        for segment in shift["segments"]:
            slots = _slots(segment["start_time"], segment["end_time"])
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
    """A day, as JSON within JSON or as it is."""
    try:
        found = orjson.loads(schedule) if isinstance(schedule, str) else schedule
        return read_day(date, found)  # type: ignore[arg-type]  # whatever it is, reading finds out
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CalendarUnavailable(
            f"the calendar's day {date} cannot be read ({type(error).__name__})"
        ) from error


def _slots(start: str, end: str) -> range:
    """The half hours from HH:MM to HH:MM; a day's last ends at 06:00."""
    first, last = slot(start.replace(":", "")), slot(end.replace(":", ""))
    return range(first, last if last > first else HALF_HOURS)


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
