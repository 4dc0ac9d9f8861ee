"""Turn a row into a message, a schedule or a recipient of a broadcast. Pure.

A row with a value for `repeat` is a schedule, a row with a `group` a recipient of that group's broadcast, and
every other row a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ...inputs.timezones import parse_timezone
from ...model import durations
from ...model.errors import Invalid
from ...model.message import Draft
from ...model.time import iso, micros, moment
from ...store.port import Row
from .column_map import ColumnSource, object_of, text_of, value_of
from .settings import TableImportRequest
from .timestamps import parse_timestamp

_ONCE = frozenset({"", "0", "none", "no", "false", "null", "once", "never"})
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MESSAGE_FIELDS = ("channel", "to", "text", "subject", "data", "priority", "ordering_key", "max_attempts")
_WORDS = "daily, weekdays, weekly, monthly, yearly, hourly, an interval such as 90m, a cron rule or an RRULE"


class ParsedRow(NamedTuple):
    """A message; or a schedule, if `schedule` is set; or a recipient of a broadcast, if `group` is set."""

    draft: Draft
    schedule: Row | None = None
    group: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ImportRowParser:
    """Parses the rows of one run relative to one instant."""

    places: Mapping[str, ColumnSource]
    request: TableImportRequest
    tenant: str
    now: int
    grace: timedelta

    def parse(self, row: Row) -> ParsedRow:
        """Parse one row; raises Invalid."""
        said = {name: value_of(place, row) for name, place in self.places.items()}
        zone_name = text_of(said.get("timezone"), "timezone")
        timezone = parse_timezone(zone_name) if zone_name else self.request.timezone
        at = self._time(said["at"], "at", timezone) if "at" in said else None
        repeat = said.get("repeat")
        if isinstance(repeat, str) and repeat.strip().lower() in _ONCE:
            repeat = None
        if not repeat:
            self._check_overdue(at)
        expires = said.get("expires_at")
        priority = _whole(said.get("priority"), "priority")
        draft = Draft(
            channel=text_of(said["channel"], "channel") or "",
            to=text_of(said["to"], "to") or "",
            text=text_of(said.get("text"), "text") or "",
            subject=text_of(said.get("subject"), "subject"),
            data=object_of(said.get("data"), "data"),
            at=at,
            priority=5 if priority is None else priority,
            ordering_key=text_of(said.get("ordering_key"), "ordering_key"),
            expires_at=None if expires is None else self._time(expires, "expires_at", timezone),
            max_attempts=_whole(said.get("max_attempts"), "max_attempts"),
            tenant=self.tenant,
        )
        name = text_of(said.get("name"), "name")
        if repeat:
            return ParsedRow(draft, self._schedule(draft, repeat, said, timezone, name))
        return ParsedRow(draft, group=text_of(said.get("group"), "group") or None, name=name)

    def _schedule(
        self, draft: Draft, repeat: Any, said: Mapping[str, Any], timezone: ZoneInfo | None, name: str | None
    ) -> Row:
        """The request of a schedule; its message takes the fields that differ from the default."""
        plain = draft._replace(priority=None if draft.priority == 5 else draft.priority)._asdict()  # type: ignore[arg-type]
        end = said.get("end")
        timing = {
            "rule": recurrence_rule(repeat, draft.at, timezone or ZoneInfo("UTC")),
            "timezone": None if timezone is None else timezone.key,
            "start": None if draft.at is None else iso(draft.at),
            "end": None if end in (None, "") else iso(self._time(end, "end", timezone)),
            "count": _whole(said.get("count"), "count"),
            "name": name,
        }
        message = {field: plain[field] for field in _MESSAGE_FIELDS if plain[field] not in (None, "")}
        return {**{field: value for field, value in timing.items() if value is not None}, "message": message}

    def _check_overdue(self, at: int | None) -> None:
        late = 0 if at is None else self.now - at
        if late > micros(self.grace) and not self.request.overdue:
            raise Invalid(
                f"the message was due {durations.humanize(timedelta(microseconds=late))} ago",
                field="at",
                remedy="skip it, or import it with --overdue",
            )

    def status_of(self, row: Mapping[str, Any]) -> str | None:
        """The status that undo restores."""
        value = None if self.request.status is None else value_of(ColumnSource(self.request.status), row)
        return None if value is None else str(value)

    def _time(self, value: Any, name: str, timezone: ZoneInfo | None) -> int:
        return parse_timestamp(value, form=self.request.time, timezone=timezone, field=name)


def recurrence_rule(repeat: Any, at: int | None, timezone: ZoneInfo) -> Row:
    """The rule that a value for `repeat` describes; words such as `daily` take their time from `at`."""
    if isinstance(repeat, dict):
        return repeat
    text = str(repeat).strip()
    word = text.lower()
    if word == "hourly":
        return {"every": "1h"}
    if word in ("daily", "weekdays", "weekly", "monthly", "yearly", "annually"):
        if at is None:
            raise Invalid(f"{word} needs the first time", field="repeat", remedy="map `at` too")
        local = moment(at).astimezone(timezone)
        clock = f"{local:%H:%M:%S}"
        return {
            "daily": {"daily": clock},
            "weekdays": {"weekly": f"mon, tue, wed, thu, fri {clock}"},
            "weekly": {"weekly": f"{_WEEKDAYS[local.weekday()]} {clock}"},
            "monthly": {"monthly": f"{local.day} {clock}"},
        }.get(word) or {"yearly": f"{local:%m-%d} {clock}"}
    if word.startswith("rrule:") or "freq=" in word:
        return {"rrule": re.sub(r"(?i)^rrule:", "", text)}
    if re.fullmatch(r"(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+", word):
        return {"every": word.replace(" ", "")}
    if word.startswith("@") or len(text.split()) in (5, 6):
        return {"cron": text}
    raise Invalid(f"unknown recurrence {text[:60]!r}", field="repeat", remedy=f"use {_WORDS}")


def _whole(value: Any, name: str) -> int | None:
    if value in (None, ""):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Invalid(f"{name} is not a whole number", field=name, remedy="map another column") from None
