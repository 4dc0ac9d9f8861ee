"""Simulated shift calendar: a command API in which a GET writes, with the faults of the real one.

- `preview` defaults to true, so a command without it changes nothing and reports success;
- errors are HTTP 200, in two shapes;
- adding a squad that is marked as without a crew changes nothing and reports success;
- a window that is not on whole hours never reaches its end: all 24 hours are booked, and it reports success;
- hours without an entry between two shifts, and from the last shift to 0600, are filled by the shift before.

Each write stores the old day and the command as a backup. Fault codes: `silent` reports success and does
nothing; `written` and `unwritten` report failure with a `changeId`, after the write and without it; `status`
refuses in the first shape, any other in the second. Recipients of faults are `read`,
`preview` and `write`. The days are lost when the sandbox stops.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response
from starlette.routing import BaseRoute

from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import ProviderMethod, ProviderRequest, http_status, provider_route
from tidings.sandbox.responses import SandboxJson
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "shift_calendar"
COMMANDS = ("noCrew", "addShift", "obliterateShift")
READS = ("get_schedule_day", "list_backups")
SILENT, STATUS = "silent", "status"
FAILED_WRITES = ("written", "unwritten")

Hours = dict[int, dict[int, bool]]  # hour -> squad -> whether it has a crew


class ShiftCalendarBackup(NamedTuple):
    """A day before a write, and the command."""

    id: str
    date: str
    day: str
    command: str


class ShiftCalendarError(Exception):
    """A command that the service answers with an error in one of its shapes."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = body


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the command route."""
    service = _ShiftCalendarProvider()
    method = ProviderMethod(_read, service.answer, service.error)
    return [provider_route(world, "/shift-calendar", method, "GET")]


class _ShiftCalendarProvider:
    def __init__(self) -> None:
        self._days: dict[str, Hours] = {}
        self._snapshots: list[ShiftCalendarBackup] = []
        self._numbers = itertools.count(1)

    def answer(self, asked: ProviderRequest, _arrival: ProviderArrival, _entry: SandboxEntry) -> Response:
        """Execute a command and answer it."""
        return SandboxJson(self._done(asked))

    def error(self, asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
        """Answer a command that fails, or that does something else than it reports."""
        if (status := http_status(code)) is not None:
            detail = "simulated" if entry.did is FaultKind.REFUSED else code
            headers = {"retry-after": f"{entry.wait:g}"} if status == 429 else None
            return SandboxJson({"detail": detail}, status_code=status, headers=headers)
        if code == SILENT:
            return SandboxJson({"success": True, "changeId": f"s{next(self._numbers)}", "action": "", "date": ""})
        if code in FAILED_WRITES:
            done = self._done(asked) if code == "written" else {"changeId": f"b{next(self._numbers)}"}
            return SandboxJson({**done, "success": False})
        words = code.replace("_", " ")
        return SandboxJson(
            {"status": "error", "message": words} if code == STATUS else {"success": False, "error": words}
        )

    def _done(self, asked: ProviderRequest) -> Mapping[str, Any]:
        try:
            return self._execute(asked.query)
        except ShiftCalendarError as wrong:
            return wrong.body

    def _execute(self, asked: Mapping[str, str]) -> Mapping[str, Any]:
        action, date = asked.get("action", ""), asked.get("date", "")
        if not action:
            raise ShiftCalendarError({"status": "error", "message": "Missing 'action' parameter"})
        if len(date) != 8 or not date.isdigit():
            raise ShiftCalendarError(
                {"status": "error", "message": f"time data {date!r} does not match format '%Y%m%d'"}
            )
        hours = self._days.get(date, {})
        match action:
            case "get_schedule_day":
                return {**_success(action, date), "day_schedule": _schedule(date, hours)}
            case "list_backups":
                found = [snapshot._asdict() for snapshot in self._snapshots if snapshot.date == date]
                return {**_success(action, date), "backups": found}
            case "rollback":
                return self._roll_back(date, asked.get("change_id", ""))
            case "noCrew" | "addShift" | "obliterateShift":
                changed = _changed(hours, asked)
                if _is_preview(asked):
                    return _shown(asked, _schedule(date, changed))
                return self._write(date, changed, action, "&".join(f"{k}={v}" for k, v in asked.items()))
            case _:
                raise ShiftCalendarError({"success": False, "error": f"Unknown action: {action}"})

    def _write(self, date: str, hours: Hours, action: str, command: str) -> Mapping[str, Any]:
        """Store a backup of the old day, then write the new one."""
        snapshot = ShiftCalendarBackup(
            f"b{next(self._numbers)}", date, _schedule(date, self._days.get(date, {})), command
        )
        self._snapshots.append(snapshot)
        self._days[date] = _parsed(_schedule(date, hours))
        return {**_success(action, date), "changeId": snapshot.id}

    def _roll_back(self, date: str, id_: str) -> Mapping[str, Any]:
        found = next((kept for kept in self._snapshots if kept.id == id_ and kept.date == date), None)
        if found is None:
            raise ShiftCalendarError({"success": False, "error": "change_id is required for rollback action"})
        self._days[date] = _parsed(found.day)
        return {**_success("rollback", date), "changeId": id_}


def _read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a command from the query."""
    action, said = asked.query.get("action", ""), asked.raw_query
    to = "read" if action in READS else "preview" if _is_preview(asked.query) and action in COMMANDS else "write"
    return ProviderArrival(CHANNEL, said[:256], to, said)


def _is_preview(query: Mapping[str, str]) -> bool:
    return query.get("preview", "true").lower() in ("true", "1", "yes")


def _changed(hours: Hours, asked: Mapping[str, str]) -> Hours:
    """Return the day after a command, with the faults of the real service."""
    changed = {hour: dict(squads) for hour, squads in hours.items()}
    try:
        squad = int(asked.get("squad", ""))
        start, end = _minutes(asked["shift_start"]), _minutes(asked["shift_end"])
    except (KeyError, ValueError) as error:
        raise ShiftCalendarError({"status": "error", "message": str(error)}) from None
    now = start
    for _ in range(24):
        _set(changed, now // 60, asked.get("action", ""), squad)
        now = (now + 60) % (24 * 60)
        if start != end and now == end:  # never true if the end is not a whole number of hours away
            break
    return changed


def _set(hours: Hours, hour: int, action: str, squad: int) -> None:
    squads = hours.get(hour, {})
    match action:
        case "noCrew" if squad in squads:
            squads[squad] = False
        case "addShift":  # an existing squad stays unchanged, with a crew or without
            hours.setdefault(hour, {}).setdefault(squad, True)
        case "obliterateShift":
            squads.pop(squad, None)


def _schedule(date: str, hours: Hours) -> str:
    """Return a day in the service's format, as JSON within its JSON. A shift ends where the next one starts."""
    order = sorted(hours, key=lambda hour: (hour < 18, hour)) if 18 in hours else sorted(hours)
    starts = [
        hour
        for hour, before in zip(order, [None, *order], strict=False)
        if before is None or hour in (6, 18) or hours[hour] != hours[before]
    ]
    ends = [*starts[1:], *(6 if hour < 6 else hour + 1 for hour in order[-1:])]
    shifts = [_shift(start, end, hours[start]) for start, end in zip(starts, ends, strict=True)]
    return orjson.dumps({"day": date, "shifts": shifts}).decode()


def _shift(first: int, last: int, squads: Mapping[int, bool]) -> dict[str, Any]:
    start, end = _clock(first), _clock(last)
    shown = [
        {"id": squad, "territories": [squad] if active else [], "active": active}
        for squad, active in sorted(squads.items())
    ]
    return {
        "name": f"{start} Shift",
        "start_time": start,
        "end_time": end,
        "segments": [{"start_time": start, "end_time": end, "squads": shown}],
        "tango": next((squad for squad, active in sorted(squads.items()) if active), None),
    }


def _parsed(text: object) -> Hours:
    """Parse a day in the service's format."""
    hours: Hours = {}
    try:
        for shift in orjson.loads(text if isinstance(text, str) else "")["shifts"]:
            for segment in shift["segments"]:
                now, end = (_minutes(segment[name].replace(":", "")) for name in ("start_time", "end_time"))
                for _ in range(24):
                    squads = {squad["id"]: squad.get("active", True) for squad in segment["squads"]}
                    hours.setdefault(now // 60, {}).update(squads)
                    now = (now + 60) % (24 * 60)
                    if now == end:
                        break
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ShiftCalendarError({"success": False, "error": str(error)}) from None
    return hours


def _success(action: str, date: str) -> dict[str, Any]:
    return {"success": True, "action": action, "date": date}


def _shown(asked: Mapping[str, str], grid: str) -> Mapping[str, Any]:
    return {**_success(asked.get("action", ""), asked.get("date", "")), "preview": True, "modified_grid": grid}


def _minutes(text: str) -> int:
    hour, minute = int(text[:-2] or "0"), int(text[-2:])
    if not (0 <= hour < 24 and 0 <= minute < 60):
        raise ValueError(f"hour must be in 0..23: {text!r}")
    return hour * 60 + minute


def _clock(hour: int) -> str:
    return f"{hour % 24:02d}:00"
