"""Compute the instants of a recurrence rule across daylight-saving changes. Pure.

**Wall-clock rules** (daily, weekly, monthly, yearly, RRULE, cron with hours) name wall-clock times; each is
resolved once in the schedule's time zone: a skipped time becomes the first valid one, a repeated time the
first of the two. **Elapsed rules** (intervals, cron for every hour) ignore clock changes.
"""

from __future__ import annotations

import calendar
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import orjson
from cronsim import CronSim

from ...inputs.timezones import instants_of, overlap_length, resolve_wall_time, wall_time
from ...model import durations
from ...model.time import SECOND, Instant, instant, micros, moment
from . import rrules

MIN_INTERVAL = SECOND  # the shortest interval
LATEST_INSTANT = instant(datetime.fromisoformat("2400-01-01T00:00:00+00:00"))  # the planning horizon
_HORIZON = 50 * 366  # days without a match after which the search ends

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CRON_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}

Times = Callable[[datetime], Iterator[datetime]]  # a wall-clock time -> those after it, in order


class Firing(NamedTuple):
    """One instant of a rule; `note` tells how a clock change was resolved."""

    at: Instant
    note: str | None = None


class RecurrenceRule(Protocol):
    """A rule that yields instants."""

    def after(self, at: int) -> Iterator[Firing]:
        """The firings after an instant, in order and unique."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A fixed interval of elapsed time, counted from an anchor."""

    length: int
    anchor: int

    def after(self, at: int) -> Iterator[Firing]:
        """Multiples of the length from the anchor, including it."""
        turn = max(0, (at - self.anchor) // self.length + 1)
        while True:
            yield Firing(Instant(self.anchor + turn * self.length))
            turn += 1


@dataclass(frozen=True, slots=True)
class EveryHour:
    """A cron rule for every hour: fires in both hours when a clock change repeats one."""

    times: Times
    timezone: ZoneInfo

    def after(self, at: int) -> Iterator[Firing]:
        """Instants whose wall-clock time matches; the second of a repeated time waits in `again`."""
        again: deque[Instant] = deque()
        for there in self.times(
            wall_time(at, self.timezone) - overlap_length(wall_time(at, self.timezone), self.timezone)
        ):
            shown = instants_of(there, self.timezone)
            while again and shown and again[0] < shown[0]:
                yield Firing(again.popleft())
            again.extend(instant for instant in shown[1:] if instant > at)
            if shown and shown[0] > at:
                yield Firing(shown[0])


@dataclass(frozen=True, slots=True)
class WallClock:
    """Wall-clock times of a time zone, each resolved once."""

    times: Times
    timezone: ZoneInfo

    def after(self, at: int) -> Iterator[Firing]:
        """Resolved times; several that fall on one instant are one firing."""
        last = at
        for there in self.times(wall_time(at, self.timezone)):
            settled = resolve_wall_time(there, self.timezone)
            if settled.at > last:
                last = settled.at
                yield Firing(settled.at, settled.note)


@dataclass(frozen=True, slots=True)
class RecurrenceSeries:
    """A rule from `start` to `end`, both included, without the dates in `excluded`."""

    rule: RecurrenceRule
    timezone: ZoneInfo
    start: int | None = None
    end: int | None = None
    excluded: frozenset[date] = field(default_factory=frozenset)

    def after(self, at: int) -> Iterator[Firing]:
        """The firings after an instant."""
        while at is not None:
            jump = None
            for firing in self._bounded(at):
                day = self._day(firing.at)
                if day in self.excluded:
                    jump = resolve_wall_time(datetime.combine(day + timedelta(days=1), time()), self.timezone).at - 1
                    break
                yield firing
            if jump is None:
                return
            at = max(jump, firing.at)

    def first_after(self, at: int) -> Firing | None:
        """The next firing, if any."""
        return next(self.after(at), None)

    def skipped(self, after: int, until: int, most: int) -> list[int]:
        """Up to `most` instants on excluded dates, until `until`."""
        if not self.excluded:
            return []
        days = sorted(self.excluded)
        low = instant(datetime.combine(days[0], time(), self.timezone)) - 1
        high = instant(datetime.combine(days[-1] + timedelta(days=1), time(), self.timezone))
        found: list[int] = []
        for firing in islice(self._bounded(max(after, low)), 100 * most):
            if firing.at > min(until, high) or len(found) == most:
                break
            if self._day(firing.at) in self.excluded:
                found.append(firing.at)
        return found

    def _bounded(self, at: int) -> Iterator[Firing]:
        if self.start is not None:
            at = max(at, self.start - 1)
        end = LATEST_INSTANT if self.end is None else self.end
        for firing in self.rule.after(at):
            if firing.at > end:
                return
            yield firing

    def _day(self, at: int) -> date:
        return moment(at).astimezone(self.timezone).date()


@lru_cache(maxsize=4096)
def compile_rule(stored: str, timezone: ZoneInfo) -> RecurrenceRule:
    """Compile a stored rule (see `rule_parser`)."""
    rule = orjson.loads(stored)
    kind = next(name for name in RULE_KINDS if name in rule)
    return RULE_KINDS[kind](rule, timezone)


def excluded_dates(stored: str) -> frozenset[date]:
    """The excluded dates of a stored rule."""
    return frozenset(date.fromisoformat(day) for day in orjson.loads(stored).get("excluded_dates", ()))


def _cron(rule: Mapping[str, Any], timezone: ZoneInfo) -> RecurrenceRule:
    expression = CRON_ALIASES.get(rule["cron"], rule["cron"])
    probe = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001  (a wall clock's)
    kind = EveryHour if len(probe.hours) == 24 else WallClock
    return kind(lambda there: iter(CronSim(expression, there)), timezone)


def _rrule(rule: Mapping[str, Any], timezone: ZoneInfo) -> RecurrenceRule:
    parts = rrules.parse(rule["rrule"])
    begin = wall_time(rule["anchor"], timezone).replace(microsecond=0)
    return WallClock(rrules.times(parts, begin, timezone), timezone)


def _by_days(match: Callable[[Mapping[str, Any]], Callable[[date], bool]], name: str) -> Any:
    def build(rule: Mapping[str, Any], timezone: ZoneInfo) -> RecurrenceRule:
        clocks = [time.fromisoformat(clock) for clock in rule[name]["at"]]
        return WallClock(_on_days(match(rule[name]), clocks), timezone)

    return build


def _on_days(is_day: Callable[[date], bool], clocks: list[time]) -> Times:
    """The given times on matching days; ends after fifty years without a match."""

    def times(there: datetime) -> Iterator[datetime]:
        day, idle = there.date(), 0
        while idle < _HORIZON:
            if is_day(day):
                idle = 0
                for clock in clocks:
                    found = datetime.combine(day, clock)
                    if found > there:
                        yield found
            idle += 1
            day += timedelta(days=1)

    return times


def _of_week(rule: Mapping[str, Any]) -> Callable[[date], bool]:
    wanted = {WEEKDAYS.index(name) for name in rule["on"]}
    return lambda day: day.weekday() in wanted


def _of_month(rule: Mapping[str, Any]) -> Callable[[date], bool]:
    """Match days by number, `last` or ordinal weekday; `short_months` may clamp days beyond the month."""
    numbers = {on for on in rule["on"] if isinstance(on, int)}
    places = {_place(on) for on in rule["on"] if isinstance(on, str) and on != "last"}
    has_last = "last" in rule["on"]
    clamps = rule["short_months"] == "last"

    def is_day(day: date) -> bool:
        length = calendar.monthrange(day.year, day.month)[1]
        if day.day in numbers or (has_last and day.day == length):
            return True
        if clamps and day.day == length and any(number > length for number in numbers):
            return True
        weekday, place = day.weekday(), (day.day + 6) // 7
        return (weekday, place) in places or ((weekday, -1) in places and day.day + 7 > length)

    return is_day


def _place(words: str) -> tuple[int, int]:
    """Parse "last friday" into a weekday and its ordinal."""
    place, weekday = words.split()
    return WEEKDAYS.index(weekday[:3]), ORDINALS[place]


def _of_year(rule: Mapping[str, Any]) -> Callable[[date], bool]:
    wanted = {(int(on[:2]), int(on[3:])) for on in rule["on"]}
    leaps = (2, 29) in wanted and rule["short_months"] == "last"

    def is_day(day: date) -> bool:
        if (day.month, day.day) in wanted:
            return True
        return leaps and (day.month, day.day) == (2, 28) and not calendar.isleap(day.year)

    return is_day


RULE_KINDS: Mapping[str, Callable[[Mapping[str, Any], ZoneInfo], RecurrenceRule]] = {
    "cron": _cron,
    "every": lambda rule, _zone: Interval(micros(durations.parse(rule["every"])), rule["anchor"]),
    "daily": _by_days(lambda _rule: lambda _day: True, "daily"),
    "weekly": _by_days(_of_week, "weekly"),
    "monthly": _by_days(_of_month, "monthly"),
    "yearly": _by_days(_of_year, "yearly"),
    "rrule": _rrule,
}
