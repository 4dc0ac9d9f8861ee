"""Import rows of another system's table as messages, schedules and broadcasts; with dry run.

Each page is written in one transaction with the keys of its rows, and each broadcast with the keys of its
recipients. A run that crashes, is repeated or runs concurrently therefore imports no row twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...kernel.clock import Clock
from ...model.errors import Invalid, TidingsError
from ...model.task import NewTask
from ...model.time import iso
from ...store.external_tables.port import ExternalTable
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..events import event_types
from ..message_serializer import error_fields
from ..message_validation import MESSAGE_COLUMNS
from ..schedules.occurrence_builder import Occurrence
from ..service import OutboundService
from .column_map import ColumnSource, parse_column_map
from .row_parser import ImportRowParser, ParsedRow
from .settings import TableImportRequest
from .timestamps import TIMESTAMP_FORMATS

PAGE = 500
SAMPLES = 5
MAX_REPORTED_ROWS = 20
MAX_SOURCE_LENGTH = 500
MAX_RECIPIENTS = 10_000  # of one broadcast; a larger group becomes several


@dataclass(slots=True)
class TableImportReport:
    """The result of a run or dry run."""

    run: str | None
    source: str
    fields: dict[str, str]
    read: int = 0
    taken: int = 0
    messages: int = 0
    schedules: int = 0
    broadcasts: int = 0
    known: int = 0  # imported by an earlier run
    refused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    bad: list[Row] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)

    def described(self) -> Row:
        """The report as API fields."""
        shown = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**shown, "reasons": dict(self.reasons.most_common())}

    def refuse(self, bad: Sequence[Row]) -> None:
        """Add rows that cannot be imported."""
        self.refused += len(bad)
        self.reasons.update(_PARTICULARS.sub("…", entry["problem"]) for entry in bad)
        self.bad += bad[: max(0, MAX_REPORTED_ROWS - len(self.bad))]


class _PreparedRow(NamedTuple):
    """A valid row: a task with its message, or the step that adds a schedule."""

    note: Row  # of `import_rows`
    sample: Row
    task: NewTask | None = None
    row: tuple[Any, ...] = ()
    step: Step | None = None


class _Recipient(NamedTuple):
    note: Row
    parsed: ParsedRow


OnProgress = Callable[[TableImportReport], None]


class TableImportService:
    """Imports tables of other systems, and lists runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        outbound: OutboundService,
        channels: Sequence[str],
        *,
        grace: timedelta,
        timezone: ZoneInfo = ZoneInfo("UTC"),
    ) -> None:
        self._store = store
        self._clock = clock
        self._outbound = outbound
        self._channels = [name for name in channels if name != event_types.EVENTS_CHANNEL]
        self._grace = grace
        self._timezone = timezone

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
            listed = [Step("write_back_add", {"source": source, "tenant": tenant})] if request.is_written_back else []
            await self._store.write([Step("import_begin", began), *listed])
        reading = ImportRowParser(places, request, tenant, self._clock.now(), self._grace)
        wanted = [place.column for place in places.values() if place.column is not None]
        wanted = list(dict.fromkeys([*wanted, *([request.status] if request.status else [])]))
        groups: dict[str, list[_Recipient]] = {}
        async for page in table.pages([key, *wanted], request.where, PAGE):
            rows = [{_KEY: str(row[0]), **dict(zip(wanted, row[1:], strict=True))} for row in page]
            await self._page(rows, reading, report, groups)
            progress(report)
        for group, recipients in groups.items():
            for start in range(0, len(recipients), MAX_RECIPIENTS):
                await self._broadcast(group, recipients[start : start + MAX_RECIPIENTS], reading, report)
                progress(report)
        if run is not None:
            await self._store.write([Step("import_end", {"id": run})])
            await self._store.hint()
        return report

    async def runs(self, *, tenant: str = "default", limit: int = 50) -> list[Row]:
        """Runs, newest first."""
        times = ("began_at", "ended_at", "undone_at")
        return [
            {
                "run": row["id"],
                "source": row["source"],
                "taken": row["taken"],
                **{name: iso(row[name]) for name in times},
            }
            for row in await self._store.read("import_list", tenant=tenant, limit=limit)
        ]

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
        columns = ", ".join(table.columns)
        for name, column in (("key", key), ("write_back", request.status)):
            if column is not None and column not in (*table.columns, table.primary):
                problem = f"the table has no column {column[:60]!r}"
                raise Invalid(problem, field=name, remedy=f"known columns: {columns}")
        if key != table.primary and (unclear := await table.unclear(key, request.where)):
            raise Invalid(unclear, field="key", remedy="give a column with unique values")
        return places, key

    async def _page(
        self,
        rows: Sequence[Row],
        reading: ImportRowParser,
        report: TableImportReport,
        groups: dict[str, list[_Recipient]],
    ) -> None:
        """Validate one page and write its messages and schedules; recipients of broadcasts join their group.

        Repeats if another run imported some of the rows meanwhile.
        """
        report.read += len(rows)
        while True:
            known = await self._known(report.source, [row[_KEY] for row in rows])
            valid, people, bad = await self._validate([row for row in rows if row[_KEY] not in known], reading)
            tasks = [one for one in valid if one.task is not None]
            try:
                if report.run is not None and valid:
                    steps = [one.step for one in valid if one.step is not None]
                    await self._store.enqueue(
                        [one.task for one in tasks if one.task is not None],
                        TableRows("messages", MESSAGE_COLUMNS, [one.row for one in tasks]),
                        also=[*steps, *self._notes(report, [one.note for one in valid], reading)],
                    )
            except WriteConflict:
                continue
            break
        for one in people:
            groups.setdefault(str(one.parsed.group), []).append(one)
        report.known += len(known)
        report.taken += len(valid)
        report.messages += len(tasks)
        report.schedules += len(valid) - len(tasks)
        report.refuse(bad)
        report.samples += [one.sample for one in valid[: max(0, SAMPLES - len(report.samples))]]

    async def _validate(
        self, rows: Sequence[Row], reading: ImportRowParser
    ) -> tuple[list[_PreparedRow], list[_Recipient], list[Row]]:
        valid: list[_PreparedRow] = []
        people: list[_Recipient] = []
        bad: list[Row] = []
        for row in rows:
            try:
                parsed = reading.parse(row)
                note = {"key": row[_KEY], "recipient": None, "before": reading.status_of(row)}
                if parsed.schedule is not None:
                    valid.append(await self._schedule(parsed, note, reading))
                    continue
                task, made = await self._outbound.messages.prepare(parsed.draft, reading.now)
                if parsed.group is not None:
                    people.append(_Recipient({**note, "recipient": made[5]}, parsed))
                else:
                    note |= {"kind": "message", "made": made[2]}
                    valid.append(_PreparedRow(note, _sample(note, parsed, task.due_at), task, made))
            except TidingsError as error:
                bad.append({"key": row[_KEY], **error_fields(error)})
        return valid, people, bad

    async def _schedule(self, parsed: ParsedRow, note: Row, reading: ImportRowParser) -> _PreparedRow:
        zone = reading.request.timezone or self._timezone
        try:
            step, _ = await self._outbound.schedules.prepare(parsed.schedule, timezone=zone, tenant=reading.tenant)
        except TidingsError as error:
            field = (error.field or "repeat").removeprefix("message.")
            raise type(error)(error.problem, remedy=error.remedy, field=field) from None
        note |= {"kind": "schedule", "made": step.params["id"]}
        return _PreparedRow(note, _sample(note, parsed, step.params["next_at"]), step=step)

    async def _broadcast(
        self, group: str, recipients: Sequence[_Recipient], reading: ImportRowParser, report: TableImportReport
    ) -> None:
        """Write the broadcast of one group with the keys of its rows; all rows must have the same content."""
        first = recipients[0].parsed.draft
        fitting, bad = [], []
        for one in recipients:
            differs = next((name for name in _SHARED if getattr(one.parsed.draft, name) != getattr(first, name)), None)
            if differs is None:
                fitting.append(one)
                continue
            problem = f"{differs} is not that of the group {group[:60]!r}"
            bad.append(
                {"key": one.note["key"], "field": differs, "problem": problem, "remedy": "give it a group of its own"}
            )
        report.refuse(bad)
        try:
            await self._write_broadcast(group, fitting, reading, report)
        except WriteConflict:  # another run imported some of the rows meanwhile
            known = await self._known(report.source, [one.note["key"] for one in fitting])
            left = [one for one in fitting if one.note["key"] not in known]
            report.known += len(fitting) - len(left)
            if left:
                await self._broadcast(group, left, reading, report)
        except TidingsError as error:
            report.refuse([{"key": one.note["key"], **error_fields(error)} for one in fitting])

    async def _write_broadcast(
        self, group: str, recipients: Sequence[_Recipient], reading: ImportRowParser, report: TableImportReport
    ) -> None:
        parsed = recipients[0].parsed
        draft, now = parsed.draft, reading.now
        body: Row = {
            "channel": draft.channel,
            "name": (parsed.name or group)[:200],
            "xref": group[:255],
            "text": draft.text or None,
            "subject": draft.subject,
            "data": draft.data,
            "priority": draft.priority,
            "maxAttempts": draft.max_attempts,
            "addresses": list(dict.fromkeys(one.note["recipient"] for one in recipients)),
            "skip_bad": True,  # each recipient was validated; an opt-out since then must not stop the others
        }
        occurrence = Occurrence(None, now if draft.at is None else draft.at, now, draft.tenant)
        made = await self._outbound.broadcast_creator.prepare(
            {name: value for name, value in body.items() if value is not None}, occurrence
        )
        notes = [{**one.note, "kind": "broadcast", "made": made.id} for one in recipients]
        if report.run is not None:
            await self._store.write([*made.steps, *self._notes(report, notes, reading)])
        report.taken += len(recipients)
        report.broadcasts += 1
        if len(report.samples) < SAMPLES:
            to = f"{len(body['addresses']):,} recipients"
            report.samples.append({**_sample(notes[0], parsed, occurrence.at), "to": to})

    async def _known(self, source: str, keys: Sequence[str]) -> set[str]:
        said = orjson.dumps(keys).decode()
        return {row["key"] for row in await self._store.read("import_known", source=source, keys=said)}

    def _notes(self, report: TableImportReport, notes: Iterable[Row], reading: ImportRowParser) -> list[Step]:
        """The steps that remember these rows; the transaction is rolled back if another run was first."""
        rows = list(notes)
        check_at = reading.now if reading.request.is_written_back else None
        note = {"source": report.source, "run": report.run, "rows": orjson.dumps(rows).decode(), "check_at": check_at}
        return [
            Step("import_add", note),
            Step("import_check", {**note, "n": len(rows)}, needed=True),
            Step("import_count", {"run": report.run, "n": len(rows)}),
        ]


_PARTICULARS = re.compile(r"'[^']*'|\d[\w:.,+-]*")  # what differs from row to row
_KEY = "\0key"  # no column has this name
_SHARED = ("channel", "text", "subject", "data", "at", "priority", "max_attempts")


def _sample(note: Row, parsed: ParsedRow, at: int) -> Row:
    draft = parsed.draft
    shown = {"key": note["key"], "kind": note["kind"], "channel": draft.channel, "to": draft.to, "at": iso(at)}
    return {**shown, "text": draft.text or None, "data": draft.data}
