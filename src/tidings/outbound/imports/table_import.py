"""Import pending rows of another system's table as messages; dry run and undo.

Each page of messages is written in one transaction with the keys of its rows, so a run that crashes, is
repeated or runs concurrently imports no row twice. Undo cancels what still waits, which may then be imported
again, and reports what was already sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...kernel.clock import Clock
from ...model import durations
from ...model.errors import Conflict, Invalid, NotFound, TidingsError
from ...model.message import Draft
from ...model.task import NewTask, TaskState
from ...model.time import iso, micros
from ...store.external_tables import ExternalTable
from ...store.port import OrderingKey, Row, Step, Store, TableRows, WriteConflict
from ..events import event_types
from ..message_serializer import error_fields
from ..message_validation import MESSAGE_COLUMNS
from ..messages import MessageService
from .column_map import ColumnSource, object_of, parse_column_map, text_of, value_of
from .timestamps import TIMESTAMP_FORMATS, parse_timestamp

PAGE = 500
SAMPLES = 5
MAX_REPORTED_ROWS = 20
MAX_SOURCE_LENGTH = 500


@dataclass(frozen=True, slots=True)
class TableImportRequest:
    """What to import, and how to read it."""

    map: Sequence[str]
    where: str | None = None
    key: str | None = None  # the unique column; None: the primary key
    channel: str | None = None  # if the map has none
    time: str = "auto"
    timezone: ZoneInfo | None = None
    overdue: bool = False  # also import rows that are overdue by more than the grace
    source: str | None = None  # the name that identifies imported rows; None: the table's location


@dataclass(slots=True)
class TableImportReport:
    """The result of a run or dry run."""

    run: str | None
    source: str
    fields: dict[str, str]
    read: int = 0
    taken: int = 0
    known: int = 0  # imported by an earlier run
    refused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    bad: list[Row] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)

    def described(self) -> Row:
        """The report as API fields."""
        shown = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**shown, "reasons": dict(self.reasons.most_common())}


class _PreparedRow(NamedTuple):
    key: str
    task: NewTask
    row: tuple[Any, ...]


OnProgress = Callable[[TableImportReport], None]


class TableImportService:
    """Imports tables of other systems, lists runs and undoes them."""

    def __init__(
        self, store: Store, clock: Clock, messages: MessageService, channels: Sequence[str], *, grace: timedelta
    ) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages
        self._channels = [name for name in channels if name != event_types.EVENTS_CHANNEL]
        self._grace = grace

    async def take(
        self,
        table: ExternalTable,
        request: TableImportRequest,
        *,
        dry_run: bool,
        tenant: str = "default",
        progress: OnProgress = lambda _report: None,
    ) -> TableImportReport:
        """Import the table. A dry run validates everything and writes nothing."""
        places, key = await self._check_request(table, request)
        source = request.source or table.name
        run = None if dry_run else self._clock.new_id()
        report = TableImportReport(run, source, {name: str(place) for name, place in places.items()})
        if run is not None:
            began = {"id": run, "tenant": tenant, "source": source}
            await self._store.write([Step("import_begin", began)])
        reading = _ImportRowReader(places, request, tenant, self._clock.now(), self._grace)
        async for rows in _pages(table, places, key, request.where):
            await self._page(rows, reading, report)
            progress(report)
        if run is not None:
            await self._store.write([Step("import_end", {"id": run})])
            await self._store.hint()
        return report

    async def _check_request(
        self, table: ExternalTable, request: TableImportRequest
    ) -> tuple[dict[str, ColumnSource], str]:
        """Validate the request before the first row is read."""
        if request.time not in TIMESTAMP_FORMATS:
            raise Invalid(
                f"unknown time format {request.time[:20]!r}", field="time", remedy=f"use {', '.join(TIMESTAMP_FORMATS)}"
            )
        if request.where is not None and ";" in request.where:
            raise Invalid("the condition has a semicolon", field="where", remedy="give one condition only")
        if request.source is not None and (len(request.source) > MAX_SOURCE_LENGTH or not request.source.isprintable()):
            raise Invalid("the name is too long or has control characters", field="as", remedy="shorten it")
        places = parse_column_map(request.map, table.columns, self._channels)
        if "channel" not in places:
            if request.channel is None:
                remedy = f"give --channel, or map it; configured: {', '.join(self._channels)}"
                raise Invalid("the channel is missing", field="channel", remedy=remedy)
            places["channel"] = ColumnSource(None, constant=request.channel)
        key = request.key or table.primary
        if key is None:
            raise Invalid("the table has no single-column key", field="key", remedy="give one with --key")
        if key not in (*table.columns, table.primary):
            columns = ", ".join(table.columns)
            raise Invalid(f"the table has no column {key[:60]!r}", field="key", remedy=f"known columns: {columns}")
        if key != table.primary and (problem := await table.unclear(key, request.where)):
            raise Invalid(problem, field="key", remedy="give a column with unique values")
        return places, key

    async def _page(self, rows: Sequence[Row], reading: _ImportRowReader, report: TableImportReport) -> None:
        """Validate one page and write the new valid rows; repeats if another run imported some meanwhile."""
        report.read += len(rows)
        while True:
            known = await self._known(report.source, [str(row[_KEY]) for row in rows])
            valid, bad = await self._validate([row for row in rows if str(row[_KEY]) not in known], reading)
            try:
                if report.run is not None and valid:
                    await self._write(report, valid)
            except WriteConflict:
                continue
            break
        report.known += len(known)
        report.taken += len(valid)
        report.refused += len(bad)
        report.reasons.update(_PARTICULARS.sub("…", entry["problem"]) for entry in bad)
        report.bad += bad[: max(0, MAX_REPORTED_ROWS - len(report.bad))]
        report.samples += [_sample(one) for one in valid[: max(0, SAMPLES - len(report.samples))]]

    async def _validate(self, rows: Sequence[Row], reading: _ImportRowReader) -> tuple[list[_PreparedRow], list[Row]]:
        valid: list[_PreparedRow] = []
        bad: list[Row] = []
        for row in rows:
            try:
                task, made = await self._messages.prepare(reading.draft(row), reading.now)
                valid.append(_PreparedRow(str(row[_KEY]), task, made))
            except TidingsError as error:
                bad.append({"key": str(row[_KEY]), **error_fields(error)})
        return valid, bad

    async def _known(self, source: str, keys: Sequence[str]) -> set[str]:
        said = orjson.dumps(keys).decode()
        return {row["key"] for row in await self._store.read("import_known", source=source, keys=said)}

    async def _write(self, report: TableImportReport, valid: Sequence[_PreparedRow]) -> None:
        notes = [{"key": one.key, "message": one.row[2]} for one in valid]
        note = {"source": report.source, "run": report.run, "rows": orjson.dumps(notes).decode()}
        await self._store.enqueue(
            [one.task for one in valid],
            TableRows("messages", MESSAGE_COLUMNS, [one.row for one in valid]),
            also=[
                Step("import_add", note),
                Step("import_check", {**note, "n": len(valid)}, needed=True),
                Step("import_count", {"run": report.run, "n": len(valid)}),
            ],
        )

    # -- runs and undo

    async def runs(self, *, tenant: str = "default", limit: int = 50) -> list[Row]:
        """Runs, newest first."""
        rows = await self._store.read("import_list", tenant=tenant, limit=limit)
        return [_run(row) for row in rows]

    async def undo(self, run: str, *, tenant: str = "default") -> Row:
        """Cancel the waiting messages of a run, which may be imported again; counts the rest by state."""
        found = await self._store.read("import_find", id=run, tenant=tenant)
        if not found:
            raise NotFound(f"there is no run {run[:60]!r}", field="run", remedy="see: tidings import list")
        if found[0]["undone_at"] is not None:
            raise Conflict(f"this run was undone at {iso(found[0]['undone_at'])}", remedy="import it again")
        counts: Counter[str] = Counter()
        after = ""
        while page := await self._store.read("import_page", run=run, after=after, limit=PAGE):
            after = page[-1]["key"]
            counts += await self._undo(page)
        if not counts["being_sent"]:
            await self._store.write([Step("import_undone", {"id": run})])
        words = ("cancelled", "being_sent", "sent", "failed")
        return {"run": run, **{word: counts[word] for word in words}}

    async def _undo(self, page: Sequence[Row]) -> Counter[str]:
        """Undo one page in one transaction; each change names the state it expects."""
        steps: list[Step] = []
        moves: list[int] = []
        for row in page:
            if row["state"] == TaskState.PENDING:
                moves.append(len(steps))
                steps += _cancelled(row, len(steps))
            elif row["state"] == TaskState.PROCESSING:
                steps.append(Step("request_cancel", {"id": row["task"]}))
            elif row["state"] in (TaskState.CANCELLED, TaskState.EXPIRED, None):
                steps.append(Step("import_drop", {"source": row["source"], "key": row["key"]}))
        keys: set[OrderingKey] = {
            (row["queue"], row["ordering_key"]) for row in page if row["ordering_key"] is not None
        }
        done = await self._store.change(steps, keys=keys) if steps else []
        missed = sum(not done[place] for place in moves)  # claimed since the page was read
        states = Counter(row["state"] for row in page)
        return Counter(
            cancelled=len(moves) - missed,
            being_sent=states[TaskState.PROCESSING] + missed,
            sent=states[TaskState.DONE],
            failed=states[TaskState.FAILED],
        )


_PARTICULARS = re.compile(r"'[^']*'|\d[\w:.,+-]*")  # what differs from row to row
_KEY = "\0key"  # no column has this name


class _ImportRowReader:
    """Parses rows relative to one instant."""

    def __init__(
        self, places: Mapping[str, ColumnSource], request: TableImportRequest, tenant: str, now: int, grace: timedelta
    ) -> None:
        self._places = places
        self._request = request
        self._tenant = tenant
        self.now = now
        self._grace = grace

    def draft(self, row: Row) -> Draft:
        """The draft of a row; raises Invalid."""
        said = {name: value_of(place, row) for name, place in self._places.items()}
        at = self._time(said["at"], "at") if "at" in said else None
        late = 0 if at is None else self.now - at
        if late > micros(self._grace) and not self._request.overdue:
            raise Invalid(
                f"the message was due {durations.humanize(timedelta(microseconds=late))} ago",
                field="at",
                remedy="skip it, or import it with --overdue",
            )
        expires = said.get("expires_at")
        priority = _whole(said.get("priority"), "priority")
        return Draft(
            channel=text_of(said["channel"], "channel") or "",
            to=text_of(said["to"], "to") or "",
            text=text_of(said.get("text"), "text") or "",
            subject=text_of(said.get("subject"), "subject"),
            data=object_of(said.get("data"), "data"),
            at=at,
            priority=5 if priority is None else priority,
            ordering_key=text_of(said.get("ordering_key"), "ordering_key"),
            expires_at=None if expires is None else self._time(expires, "expires_at"),
            max_attempts=_whole(said.get("max_attempts"), "max_attempts"),
            tenant=self._tenant,
        )

    def _time(self, value: Any, name: str) -> int:
        return parse_timestamp(value, form=self._request.time, timezone=self._request.timezone, field=name)


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Invalid(f"{name} is not a whole number", field=name, remedy="map another column") from None


async def _pages(
    table: ExternalTable, places: Mapping[str, ColumnSource], key: str, where: str | None
) -> AsyncIterator[list[Row]]:
    """The rows page by page, as mappings with their key."""
    wanted = list(dict.fromkeys(place.column for place in places.values() if place.column is not None))
    after: Any = None
    while rows := await table.rows([key, *wanted], where, after, PAGE):
        yield [{_KEY: row[0], **dict(zip(wanted, row[1:], strict=True))} for row in rows]
        after = rows[-1][0]
        if len(rows) < PAGE:
            return


def _sample(one: _PreparedRow) -> Row:
    content = orjson.loads(one.row[6])
    return {
        "key": one.key,
        "channel": one.task.queue,
        "to": one.row[5],
        "at": iso(one.task.due_at),
        "text": content.get("text"),
        "data": content.get("data"),
    }


def _cancelled(row: Row, place: int) -> list[Step]:
    line = {
        "task": row["task"],
        "origin": TaskState.PENDING.value,
        "state": TaskState.CANCELLED.value,
        "attempt": row["attempts"],
        "node": None,
        "category": None,
        "detail": "its import was undone",
    }
    return [
        Step("cancel", {"id": row["task"], "expected": TaskState.PENDING.value}),
        Step("record_now", line, only_if=place),
        Step("import_drop", {"source": row["source"], "key": row["key"]}, only_if=place),
    ]


def _run(row: Row) -> Row:
    times = {name: iso(row[name]) for name in ("began_at", "ended_at", "undone_at")}
    return {"run": row["id"], "source": row["source"], "taken": row["taken"], **times}
