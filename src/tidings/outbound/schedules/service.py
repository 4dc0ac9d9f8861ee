"""Create, edit, pause, resume, run, preview and remove schedules.

Each schedule is one row that the scheduler polls with one query. A change takes effect at once: edits and
scheduler steps are both conditional on the row's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from ...inputs.fields import check_fields
from ...inputs.natural_times import describe_time
from ...inputs.pagination import Page, decode_position, page_size
from ...inputs.timezones import timezone_or_utc
from ...kernel.clock import Clock
from ...model import durations
from ...model.errors import CallerError, Conflict, Invalid, NotFound
from ...model.time import SECOND, iso, micros, moment
from ...store.port import IdempotencyRecord, Row, Step, Store, TableRows, WriteConflict
from ..idempotency import CreateResult, create_once, find_replay, optional_key, replayed_answer
from ..message_validation import MESSAGE_COLUMNS, MessageLimits
from . import request_parser
from .catch_up import announced, series_of
from .occurrence_builder import Occurrence, OccurrenceBuilder, PreparedOccurrence, nested_error
from .recurrence import RecurrenceSeries
from .rule_descriptions import describe_rule
from .rule_parser import serialize_rule
from .schedule_filters import STATES, find_schedules, parse_filter

_TRIES = 5  # attempts of a change that loses to concurrent ones
_DROPPED = 5000


class ScheduleService:
    """Schedule operations of the API, CLI and dashboard."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        makers: Mapping[str, OccurrenceBuilder],
        rules: MessageLimits = MessageLimits(),
    ) -> None:
        self._store = store
        self._clock = clock
        self._makers = makers
        self._rules = rules

    # -- creating and changing

    async def create(
        self, body: object, *, timezone: ZoneInfo, key: str | None = None, tenant: str = "default"
    ) -> CreateResult:
        """Create a schedule; `zone` is the default time zone."""
        given = check_fields(body, request_parser.SCHEDULE_FIELDS)
        earlier = await find_replay(self._store, self.once("schedules", key, given, None, tenant))
        if earlier is not None:
            return earlier
        step, shown = await self.prepare(given, timezone=timezone, tenant=tenant)
        made = await create_once(self._store, [step], shown, self.once("schedules", key, given, shown, tenant))
        await self._hint(step.params["next_at"], step.params["at"])
        return made

    async def prepare(self, body: object, *, timezone: ZoneInfo, tenant: str = "default") -> tuple[Step, Row]:
        """Return the step that writes a new schedule, and the schedule as shown; raises if it is invalid."""
        given, now, id_ = (check_fields(body, request_parser.SCHEDULE_FIELDS), self._clock.now(), self._clock.new_id())
        wanted = request_parser.parse_schedule(given, timezone, now)
        first = request_parser.first_instant(wanted, now)
        await self._validate(wanted, Occurrence(id_, now, now, tenant))
        row = {**wanted._asdict(), "id": id_, "tenant": tenant, "next_at": first, "at": now}
        blank = dict.fromkeys(("last_at", "last_created", "held_at", "problem"))
        new = {**row, **blank, "state": "active", "fired": 0, "version": 0, "created_at": now, "changed_at": now}
        return Step("schedule_add", row), serialize_schedule(new, now)

    async def edit(self, id_: str, body: object, *, tenant: str = "default") -> Row:
        """Change some fields; null resets a field to its default."""
        changes = check_fields(body, request_parser.SCHEDULE_CHANGES)
        for _ in range(_TRIES):
            row, now = await self._find(id_, tenant), self._clock.now()
            given = {**request_parser.to_request(row), **changes}
            if changes.get("message") is not None or changes.get("broadcast") is not None:
                given |= {name: changes.get(name) for name in ("message", "broadcast")}
            wanted = request_parser.parse_schedule(given, timezone_or_utc(row["timezone"]), now, before=row)
            next_at = row["next_at"] if row["held_at"] is None else row["held_at"]
            if request_parser.timing_of(wanted._asdict()) != request_parser.timing_of(row) and row["state"] == "active":
                next_at = request_parser.first_instant(wanted, max(now, row["last_at"] or 0))
            if wanted.most is not None and wanted.most <= row["fired"] and row["state"] == "active":
                raise request_parser.never_fires(
                    f"it has already fired {row['fired']} times", "count", "give a higher count, or end it"
                )
            await self._validate(wanted, Occurrence(id_, now, now, tenant))
            step = {"id": id_, "tenant": tenant, "version": row["version"], "next_at": next_at, "at": now}
            if (await self._store.write([Step("schedule_edit", {**wanted._asdict(), **step})]))[0]:
                await self._hint(next_at, now)
                return await self.show(id_, tenant=tenant)
        raise _overtaken()

    async def pause(self, id_: str, *, tenant: str = "default") -> Row:
        """Pause until resumed."""
        return await self._switch(id_, tenant, "paused", ("active",))

    async def resume(self, id_: str, *, tenant: str = "default") -> Row:
        """Resume with the next instant from now; occurrences during the pause are not made."""
        return await self._switch(id_, tenant, "active", ("paused", "ended"))

    async def end(self, id_: str, *, tenant: str = "default") -> Row:
        """End the schedule; its log stays."""
        return await self._switch(id_, tenant, "ended", ("active", "paused"))

    async def remove(self, id_: str, *, tenant: str = "default") -> Row:
        """End and delete the schedule and its log; messages it created stay."""
        row = await self._find(id_, tenant)
        if row["state"] != "ended":
            await self._switch(id_, tenant, "ended", STATES)
        page = Step("occurrence_drop", {"schedule": id_, "limit": _DROPPED})
        while len((await self._store.write([page]))[0]) == _DROPPED:
            pass
        await self._store.write([Step("schedule_remove", {"id": id_, "tenant": tenant})])
        return {"id": id_, "removed": True}

    async def run(self, id_: str, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Run once now, in addition to its rule."""
        earlier = await find_replay(self._store, self.once("schedules.run", key, id_, None, tenant))
        if earlier is not None:
            return earlier
        for _ in range(_TRIES):
            row, now = await self._find(id_, tenant), self._clock.now()
            if row["state"] == "ended":
                raise Conflict("the schedule has ended", remedy="resume it first, or create a new one")
            if row["overlap"] != "allow" and await self._store.read("schedule_unfinished", id=row["last_created"]):
                problem = f"its previous occurrence ({row['last_created']}) is not finished"
                raise Conflict(problem, remedy="wait for it, cancel it, or set overlap to allow")
            occurrence = Occurrence(id_, now, now, tenant)
            making = await self._maker(row["creates"]).prepare(orjson.loads(row["body"]), occurrence)
            answer = {"id": making.id, "creates": row["creates"], "schedule": id_, "at": iso(now)}
            kept = self.once("schedules.run", key, id_, answer, tenant)
            try:
                return await self._write_run(row, making, answer, kept, now)
            except WriteConflict:
                continue
        raise _overtaken()

    async def _write_run(
        self, row: Row, making: PreparedOccurrence, answer: Row, kept: IdempotencyRecord | None, now: int
    ) -> CreateResult:
        """Write the message or broadcast, its log line and the last run, in one transaction."""
        id_ = row["id"]
        line = {"schedule": id_, "at": now, "outcome": "created", "created": making.id, "detail": "run by hand"}
        ran = {"id": id_, "version": row["version"], "at": now, "created": making.id}
        steps = [
            *making.steps,
            Step("schedule_ran", ran, needed=True),
            Step("occurrence_add", {"lines": orjson.dumps([line]).decode()}),
        ]
        rows = TableRows("messages", MESSAGE_COLUMNS, making.rows)
        done = await self._store.enqueue(making.tasks, rows, once=kept, also=steps)
        if done.earlier is not None and kept is not None:
            return CreateResult(replayed_answer(done.earlier, kept), replayed=True)
        await self._store.hint()
        return CreateResult(answer)

    # -- reading

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One schedule; raises NotFound."""
        return serialize_schedule(await self._find(id_, tenant), self._clock.now())

    async def page(
        self,
        *,
        state: str | None = None,
        limit: int = 50,
        after: str | None = None,
        tenant: str = "default",
        **filters: str | None,
    ) -> Page:
        """Schedules that match the filters of `schedule_filters`, newest first."""
        found = await find_schedules(
            self._store, parse_filter({"state": state, **filters}), limit=limit, after=after, tenant=tenant
        )
        now = self._clock.now()
        return Page([serialize_schedule(row, now) for row in found.items], found.next)

    async def occurrences(
        self, id_: str, *, limit: int = 50, after: str | None = None, tenant: str = "default"
    ) -> Page:
        """The occurrence log, newest first."""
        row, size = await self._find(id_, tenant), page_size(limit)
        lines = await self._store.read("occurrence_page", schedule=id_, before=decode_position(after), limit=size)
        timezone = timezone_or_utc(row["timezone"])
        return Page([_line(line, timezone) for line in lines], str(lines[-1]["at"]) if len(lines) == size else None)

    async def preview(self, id_: str, n: int = 10, *, tenant: str = "default") -> list[Row]:
        """The next firings of a schedule; of a paused one as if resumed now."""
        row, now = await self._find(id_, tenant), self._clock.now()
        left = None if row["most"] is None else max(0, row["most"] - row["fired"])
        start = max(now, row["last_at"] or 0) if row["next_at"] is None else announced(row) - 1
        return _firings(series_of(row), start, _shown(n, left))

    def foresee(self, body: object, *, timezone: ZoneInfo) -> dict[str, Any]:
        """The next firings of a rule that is not saved."""
        given, now = check_fields(body, request_parser.PREVIEW_FIELDS), self._clock.now()
        count = given.get("n")
        timing = {name: value for name, value in given.items() if name != "n"}
        rule, chosen, start, end, most = request_parser.parse_timing(timing, timezone, now)
        row = {"rule": rule, "timezone": chosen.key, "start_at": start, "end_at": end}
        items = _firings(series_of(row), now, _shown(10 if count is None else count, most))
        return {"rule_in_words": describe_rule(rule), "timezone": chosen.key, "items": items}

    # -- helpers

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("schedule_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"there is no schedule {id_[:60]}", remedy="look it up with: tidings schedules list")
        return rows[0]

    async def _switch(self, id_: str, tenant: str, state: str, origins: tuple[str, ...]) -> Row:
        for _ in range(_TRIES):
            row, now = await self._find(id_, tenant), self._clock.now()
            if row["state"] not in origins:
                raise Conflict(f"the schedule is already {row['state']}", remedy=f"see: tidings schedules show {id_}")
            next_at = _resumed(row, now) if state == "active" else None
            step = {"id": id_, "tenant": tenant, "version": row["version"], "state": state, "at": now}
            if (await self._store.write([Step("schedule_switch", {**step, "next_at": next_at})]))[0]:
                await self._hint(next_at, now)
                return await self.show(id_, tenant=tenant)
        raise _overtaken()

    async def _validate(self, wanted: request_parser.ScheduleRequest, occurrence: Occurrence) -> None:
        """Raise if the message or broadcast could not be created today."""
        try:
            await self._maker(wanted.creates).prepare(orjson.loads(wanted.body), occurrence)
        except CallerError as error:
            raise nested_error(wanted.creates, error) from None

    def _maker(self, makes: str) -> OccurrenceBuilder:
        maker = self._makers.get(makes)
        if maker is None:
            raise Invalid(f"this process cannot schedule a {makes}", remedy="use message")
        return maker

    def once(self, scope: str, key: str | None, said: object, answer: object, tenant: str) -> IdempotencyRecord | None:
        """The idempotency record of a call with a key."""
        until = self._clock.now() + micros(self._rules.keep_keys)
        return optional_key(scope, key, said, answer, tenant=tenant, until=until)

    async def _hint(self, next_at: int | None, now: int) -> None:
        if next_at is not None and next_at <= now + 2 * SECOND:
            await self._store.hint()


def serialize_schedule(row: Row, now: int) -> Row:
    """A schedule row as API fields."""
    timezone = timezone_or_utc(row["timezone"])
    next_at = None if row["next_at"] is None else announced(row)
    return {
        **{name: row[name] for name in ("id", "name", "state")},
        "rule": serialize_rule(row["rule"]),
        "rule_in_words": describe_rule(row["rule"]),
        "timezone": row["timezone"],
        "start": iso(row["start_at"]),
        "end": iso(row["end_at"]),
        "count": row["most"],
        "excluded_dates": orjson.loads(row["rule"]).get("excluded_dates", []),
        "catch_up": row["catch_up"],
        "catch_up_window": durations.humanize(timedelta(microseconds=row["catch_up_window"])).replace(" ", ""),
        "overlap": row["overlap"],
        "tags": request_parser.tags_of(row["tags"]),
        "creates": row["creates"],
        row["creates"]: orjson.loads(row["body"]),
        "runs": row["fired"],
        "next_at": iso(next_at),
        "next": None if next_at is None else describe_time(next_at, timezone, now=now),
        "waits_for": None if row["held_at"] is None else row["last_created"],
        "last_at": iso(row["last_at"]),
        **{name: row[name] for name in ("last_created", "problem", "version")},
        "created_at": iso(row["created_at"]),
        "changed_at": iso(row["changed_at"]),
    }


def _line(line: Row, timezone: ZoneInfo) -> Row:
    return {
        "at": iso(line["at"]),
        "local": moment(line["at"]).astimezone(timezone).isoformat(timespec="seconds"),
        **{name: line[name] for name in ("outcome", "created", "detail")},
        "recorded_at": iso(line["recorded_at"]),
    }


def _firings(series: RecurrenceSeries, after: int, n: int) -> list[Row]:
    return [
        {
            "at": iso(firing.at),
            "local": moment(firing.at).astimezone(series.timezone).isoformat(timespec="seconds"),
            "words": f"{moment(firing.at).astimezone(series.timezone):%a %d %b %Y %H:%M:%S %Z}",
            "note": firing.note,
        }
        for firing in islice(series.after(after), n)
    ]


def _shown(n: int, left: int | None) -> int:
    if not 1 <= n <= request_parser.MAX_PREVIEWED:
        raise Invalid(f"n is {n}", field="n", remedy=f"use 1 to {request_parser.MAX_PREVIEWED}")
    return n if left is None else min(n, left)


def _resumed(row: Row, now: int) -> int:
    if row["most"] is not None and row["fired"] >= row["most"]:
        raise Conflict(f"it has made all {row['most']} occurrences", remedy="give it a higher count first")
    following = series_of(row).first_after(max(now, row["last_at"] or 0))
    if following is None:
        raise Conflict("it has no occurrence left", remedy="give it a later end, or another rule, first")
    return following.at


def _overtaken() -> Conflict:
    return Conflict("another call changed the schedule", remedy="read it again, then repeat the call")
