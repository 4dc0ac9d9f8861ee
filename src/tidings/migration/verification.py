"""Verification: every record of the source against the target, each difference with its reason.

Both sides are read once and sorted on disk by key, so memory stays flat. The pass mark is parity: source =
same + rejected + skipped + not migrated by decision, and nothing in the target that nobody can explain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .connectors.port import (
    Fields,
    Record,
    RecordPage,
    RecordSource,
    RecordState,
    RecordTarget,
    UnreadableRecord,
    WriteStrategy,
)
from .external_sort import LARGEST_RUN, SortedRuns
from .extractor import encode_record, source_id_of
from .field_diff import changed_fields
from .job_file import MigrationJob
from .mapping.content_hash import content_digest
from .mapping.mapped_record import MappedRecord, redacted
from .mapping.mapper import Mapper
from .mapping.paths import value_at
from .mapping.rules import TypeMap
from .verification_report import (
    EXPLAINED_CODES,
    DifferenceCode,
    RecordDifference,
    TypeVerification,
    VerificationReport,
)

MOST_GROUPS = 200
_SIDE_BY_SIDE = 10  # records of one key that are compared with each other
_MARK = 24  # characters that name what the source said of a mended record
_BREATH = 500  # keys after which others may run

Tell = Callable[[RecordDifference], None]


class JobRecords(Protocol):
    """What the job itself knows of its records."""

    async def targets(self, asked: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """The target's ids by type and source id, as far as there are any."""

    async def standings(self, type_: str, ids: Sequence[str]) -> Mapping[str, tuple[RecordState, str]]:
        """Where records stand, and why, by source id."""

    def mended(self, type_: str) -> AsyncIterator[tuple[str, str]]:
        """The records of a type that were mended: their ids, and what the source had said of them."""

    async def repaired_fields(self, type_: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        """Their fields by id."""


class _ExpectedRecord(NamedTuple):
    """A record of the source, as the target should have it; without fields it should not."""

    type: str
    id: str
    group: str | None
    code: DifferenceCode | None
    reason: str
    fields: dict[str, Any] | None


class _ActualRecord(NamedTuple):
    """A record of the target."""

    id: str
    fields: dict[str, Any] | None


async def verify(
    job: MigrationJob,
    source: RecordSource,
    target: RecordTarget,
    mapper: Mapper,
    ledger: JobRecords,
    *,
    tell: Tell | None = None,
    largest_run: int = LARGEST_RUN,
) -> VerificationReport:
    """Compare everything. `tell` hears of every difference, also of those that the report has no room for."""
    reports = {one.name: TypeVerification(one.name) for one in job.types}
    for name in dict.fromkeys(one.target for one in job.types):
        check = _TypeCheck(name, [one for one in job.types if one.target == name], reports, mapper, tell)
        with SortedRuns(largest=largest_run) as runs:
            by_id = target.strategy(name) is WriteStrategy.RECONCILE
            for one in check.types:
                await check.read_source(one, source, ledger, runs, by_id=by_id)
            await check.read_target(target, runs, by_id=by_id)
            await check.compare(runs)
    behind = {name: (reason, await source.count(name)) for name, reason in job.not_migrated.items()}
    return VerificationReport(list(reports.values()), job.mapping_hash, behind)


class _TypeCheck:
    """One type of the target, and the types of the job that are written to it."""

    def __init__(
        self,
        target: str,
        types: Sequence[TypeMap],
        reports: Mapping[str, TypeVerification],
        mapper: Mapper,
        tell: Tell | None,
    ) -> None:
        self.types = types
        self._target = target
        self._maps = {one.name: one for one in types}
        self._reports = reports
        self._mapper = mapper
        self._told = tell

    async def read_source(
        self, type_: TypeMap, source: RecordSource, ledger: JobRecords, runs: SortedRuns, *, by_id: bool
    ) -> None:
        """Map every record of a type into the runs, page by page; those mended as they were mended."""
        report, cursor = self._reports[type_.name], None
        mended = {_mark(source_id_of(id_), given): id_ async for id_, given in ledger.mended(type_.name)}
        used = 0
        while True:
            page = await source.page(type_.source, cursor)
            report.source += len(page.records) + len(page.spoiled)
            records, spoiled, ids = _unrepaired(page, mended) if mended else (page.records, page.spoiled, [])
            used += len(ids)
            repaired = await ledger.repaired_fields(type_.name, ids) if ids else {}
            ours = [Record(type_.name, one.id, one.fields) for one in records]
            ours += [Record(type_.name, id_, fields) for id_, fields in repaired.items()]
            await self._take(type_, ours, ledger, runs, by_id=by_id)
            for one in spoiled:
                bad = _ExpectedRecord(type_.name, one.id, None, DifferenceCode.REJECTED, one.reason, None)
                runs.add(f" {type_.name} {one.id}", "ours", *bad)
            cursor = page.cursor
            if cursor is None:
                break
        if used:
            report.notes.append(
                f"{used:,} records were mended on their way, and are compared as they were mended"
            )
        said = await source.count(type_.source)
        if said is not None and said != report.source:
            report.notes.append(f"the source said {said:,} and gave {report.source:,}: it changed underneath")

    async def _take(
        self, type_: TypeMap, records: Sequence[Record], ledger: JobRecords, runs: SortedRuns, *, by_id: bool
    ) -> None:
        asked = {link for one in records for link in self._mapper.references(one)}
        asked |= {(type_.name, one.id) for one in records} if by_id else set()
        known = await ledger.targets(sorted(asked)) if asked else {}
        standings = await ledger.standings(type_.name, [one.id for one in records])
        for record in records:
            group = self._group(type_, record)
            ours = self._ours(record, group, known, standings.get(record.id))
            key = known.get((type_.name, record.id)) if by_id else self._mapper.key(record)
            runs.add(f" {type_.name} {record.id}" if key is None else key, "ours", *ours)

    def _group(self, type_: TypeMap, record: Record) -> str | None:
        if type_.group is None:
            return None
        groups = self._reports[type_.name].groups
        name = redacted(value_at(record, type_.group)).strip('"')
        if name not in groups and len(groups) >= MOST_GROUPS:
            name = "(others)"
        return name

    def _ours(
        self,
        record: Record,
        group: str | None,
        known: Mapping[tuple[str, str], str],
        standing: tuple[RecordState, str] | None,
    ) -> _ExpectedRecord:
        mapped = self._mapper.map(record, lambda type_, id_: known.get((type_, id_)))
        if isinstance(mapped, MappedRecord):
            code, reason = _excuse(standing)
            return _ExpectedRecord(record.type, record.id, group, code, reason, dict(mapped.fields))
        code = _CODES.get(mapped.standing, DifferenceCode.REJECTED)
        return _ExpectedRecord(record.type, record.id, group, code, str(mapped), None)

    async def read_target(self, target: RecordTarget, runs: SortedRuns, *, by_id: bool) -> None:
        """Every record of the target into the runs; those without a key of ours are told at once."""
        async for key, written in target.read_all(self._target):
            if not key and not by_id:
                self._extra("", written.id, "it has no key of ours")
                continue
            fields = None if written.fields is None else dict(written.fields)
            runs.add(written.id if by_id else key, "theirs", written.id, fields)

    async def compare(self, runs: SortedRuns) -> None:
        """Key by key."""
        for place, (key, rows) in enumerate(runs.groups()):
            ours, theirs = self._sides(key, rows)
            if ours:
                self._judge(key, ours, theirs)
            elif theirs:
                self._extra(key, theirs[0].id, "the source has no such record")
            if place % _BREATH == 0:
                await asyncio.sleep(0)

    def _sides(
        self, key: str, rows: Iterable[list[Any]]
    ) -> tuple[list[_ExpectedRecord], list[_ActualRecord]]:
        """The records of one key, the first few of each side; all beyond the first are told."""
        ours: list[_ExpectedRecord] = []
        theirs: list[_ActualRecord] = []
        for side, *values in rows:
            if side == "ours":
                one = _ExpectedRecord(values[0], values[1], values[2], _code(values[3]), values[4], values[5])
                self._count(one, "source")
                if ours and one.code is None:
                    reason = f"{ours[0].type} {ours[0].id} has the same key"
                    self._tell(DifferenceCode.DUPLICATE_KEY, one.type, key, one.id, None, reason)
                if len(ours) < _SIDE_BY_SIDE:
                    ours.append(one)
            else:
                if theirs:
                    name = ours[0].type if ours else self.types[0].name
                    self._reports[name].target += 1
                    self._tell(
                        DifferenceCode.DOUBLED,
                        name,
                        key,
                        None,
                        values[0],
                        f"{theirs[0].id} is the same record",
                    )
                if len(theirs) < _SIDE_BY_SIDE:
                    theirs.append(_ActualRecord(*values))
        return ours, theirs

    def _judge(self, key: str, ours: Sequence[_ExpectedRecord], theirs: Sequence[_ActualRecord]) -> None:
        """What became of the records of one key: one of them should be in the target, or none."""
        wanted = [one for one in ours if one.fields is not None]
        for one in ours:
            if one.fields is None:
                self._left(key, one, theirs if not wanted else ())
        if theirs:
            name = (wanted or ours)[0].type
            self._reports[name].target += 1
        if not wanted:
            return
        if not theirs:
            self._missing(key, wanted[0])
            return
        self._count(wanted[0], "target")
        self._same_or_not(key, wanted, theirs)

    def _same_or_not(
        self, key: str, wanted: Sequence[_ExpectedRecord], theirs: Sequence[_ActualRecord]
    ) -> None:
        first, there = wanted[0], theirs[0]
        if there.fields is None:
            note = "the target does not tell its fields: only their being there was compared"
            report = self._reports[first.type]
            report.notes += [] if note in report.notes else [note]
        found = [changed_fields(self._mapper, one.type, one.fields or {}, there.fields) for one in wanted]
        if any(not differing for differing in found):
            self._reports[first.type].same += 1
            self._count(first, "same")
            return
        reason = f"{', '.join(change.field for change in found[0])} not as in the source"
        difference = RecordDifference(
            DifferenceCode.DIFFERENT, first.type, key, first.id, there.id, reason, False, tuple(found[0])
        )
        self._report(difference)

    def _left(self, key: str, one: _ExpectedRecord, theirs: Sequence[_ActualRecord]) -> None:
        """A record that the map does not let through; it should not be in the target either."""
        code = one.code or DifferenceCode.REJECTED
        if theirs and code is DifferenceCode.SKIPPED:
            reason = f"left out by decision, yet in the target: {one.reason}"
            self._tell(DifferenceCode.EXTRA, one.type, key, one.id, theirs[0].id, reason)
            return
        found = theirs[0].id if theirs else None
        self._tell(code, one.type, key, one.id, found, one.reason, explained=code in EXPLAINED_CODES)

    def _missing(self, key: str, one: _ExpectedRecord) -> None:
        code = one.code or DifferenceCode.MISSING
        reason = one.reason or "it is not in the target"
        self._tell(code, one.type, key, one.id, None, reason, explained=code in EXPLAINED_CODES)

    def _extra(self, key: str, id_: str, reason: str) -> None:
        first = self.types[0]
        self._reports[first.name].target += 1
        self._tell(DifferenceCode.EXTRA, first.name, key, None, id_, reason, explained=first.extra)

    def _count(self, one: _ExpectedRecord, what: str) -> None:
        if one.group is not None:
            groups = self._reports[one.type].groups
            counts = groups.setdefault(one.group, {"source": 0, "target": 0, "same": 0})
            counts[what] += 1

    def _tell(
        self,
        code: DifferenceCode,
        type_: str,
        key: str,
        source_id: str | None,
        target_id: str | None,
        reason: str,
        *,
        explained: bool = False,
    ) -> None:
        self._report(RecordDifference(code, type_, key.strip(), source_id, target_id, reason, explained))

    def _report(self, difference: RecordDifference) -> None:
        self._reports[difference.type].tell(difference)
        if self._told is not None:
            self._told(difference)


def _mark(id_: str, given: str) -> str:
    """Names what the source says of a record, in few bytes."""
    return content_digest([id_, given])[:_MARK]


def _unrepaired(
    page: RecordPage, mended: Mapping[str, str]
) -> tuple[Sequence[Record], Sequence[UnreadableRecord], Sequence[str]]:
    """Records and spoiled ones of a page that nobody has mended; and the ids of the others. Pure."""
    records = [(one, mended.get(_mark(one.id, encode_record(one)[0] or ""))) for one in page.records]
    spoiled = [(one, mended.get(_mark(one.id, ""))) for one in page.spoiled]
    ids = [id_ for _, id_ in (*records, *spoiled) if id_ is not None]
    return [one for one, id_ in records if id_ is None], [one for one, id_ in spoiled if id_ is None], ids


_CODES = {
    RecordState.WAITING: DifferenceCode.WAITING,
    RecordState.SKIPPED: DifferenceCode.SKIPPED,
    RecordState.REJECTED: DifferenceCode.REJECTED,
    RecordState.FAILED: DifferenceCode.FAILED,
}


def _excuse(standing: tuple[RecordState, str] | None) -> tuple[DifferenceCode | None, str]:
    """What the job says about a record that should be in the target."""
    if standing is None or standing[0] not in _CODES:
        return None, ""
    return _CODES[standing[0]], standing[1] or str(standing[0])


def _code(name: str | None) -> DifferenceCode | None:
    return None if name is None else DifferenceCode(name)
