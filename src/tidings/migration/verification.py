"""Verification: compares every source record with the target and explains each difference.

Both sides are read once and sorted on disk by key, so memory stays flat. Parity passes: source = same +
rejected + skipped + not migrated by decision, and nothing unexplained in the target.
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
    RecordTarget,
    SupportsCanonicalForm,
    UnreadableRecord,
    WriteStrategy,
)
from .external_sort import LARGEST_RUN, SortedRuns
from .extractor import encode_record, source_id_of
from .job_file import MigrationJob
from .mapping.content_hash import content_digest
from .mapping.mapped_record import MappedRecord, redacted
from .mapping.mapper import Mapper
from .mapping.rules import TypeMap, value_at
from .record_states import RecordState
from .verification_report import EXPLAINED_CODES, DifferenceCode, RecordDifference, TypeVerification, VerificationReport

MOST_GROUPS = 200
_SIDE_BY_SIDE = 10  # records of one key that are compared
_MARK = 24  # characters of the digest of a repaired record's source fields
_BREATH = 500  # keys between two yields to the event loop

Tell = Callable[[RecordDifference], None]


class JobRecords(Protocol):
    """What the job stores about its records."""

    async def targets(self, asked: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Return target ids by type and source id, where known."""

    async def states(self, type_: str, ids: Sequence[str]) -> Mapping[str, tuple[RecordState, str]]:
        """Return state and reason by source id."""

    def repairs(self, type_: str) -> AsyncIterator[tuple[str, str]]:
        """Yield the repaired records of a type: their ids, and the fields that the source gave."""

    async def repaired_fields(self, type_: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        """Return repaired fields by id."""


class _ExpectedRecord(NamedTuple):
    """A source record as the target should have it; without fields it should be absent."""

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
    """Compare everything. `tell` gets every difference, also those that do not fit into the report."""
    reports = {one.name: _empty_report(one) for one in job.types}
    for name in dict.fromkeys(one.target for one in job.types):
        check = _TypeCheck(target, [one for one in job.types if one.target == name], reports, mapper, tell)
        with SortedRuns(largest=largest_run) as runs:
            by_id = target.strategy(name) is WriteStrategy.RECONCILE
            for one in check.types:
                await check.read_source(one, source, ledger, runs, by_id=by_id)
            await check.read_target(target, runs, by_id=by_id)
            await check.compare(runs)
    behind = {name: (reason, await source.count(name)) for name, reason in job.not_migrated.items()}
    return VerificationReport(list(reports.values()), job.mapping_hash, behind)


def _empty_report(type_: TypeMap) -> TypeVerification:
    fields = [rule.name for rule in type_.fields if rule.reference is not None]
    return TypeVerification(type_.name, relations={name: {"source": 0, "target": 0} for name in fields})


class _TypeCheck:
    """One target type, and the types of the job that are written to it."""

    def __init__(
        self,
        target: RecordTarget,
        types: Sequence[TypeMap],
        reports: Mapping[str, TypeVerification],
        mapper: Mapper,
        tell: Tell | None,
    ) -> None:
        self.types, self._target = types, types[0].target
        self._canonical = target.canonical if isinstance(target, SupportsCanonicalForm) else None
        self._reports, self._mapper = reports, mapper
        self._on_difference = tell

    async def read_source(
        self, type_: TypeMap, source: RecordSource, ledger: JobRecords, runs: SortedRuns, *, by_id: bool
    ) -> None:
        """Map every record of a type into the runs, page by page; repaired ones in their repaired form."""
        report, cursor = self._reports[type_.name], None
        repairs = {_mark(source_id_of(id_), given): id_ async for id_, given in ledger.repairs(type_.name)}
        used = 0
        while True:
            page = await source.page(type_.source, cursor)
            report.source += len(page.records) + len(page.unreadable)
            records, unreadable, ids = _unrepaired(page, repairs) if repairs else (page.records, page.unreadable, [])
            used += len(ids)
            repaired = await ledger.repaired_fields(type_.name, ids) if ids else {}
            expected = [Record(type_.name, one.id, one.fields) for one in records]
            expected += [Record(type_.name, id_, fields) for id_, fields in repaired.items()]
            await self._take(type_, expected, ledger, runs, by_id=by_id)
            for one in unreadable:
                bad = _ExpectedRecord(type_.name, one.id, None, DifferenceCode.REJECTED, one.reason, None)
                runs.add(f" {type_.name} {one.id}", "ours", *bad)
            cursor = page.cursor
            if cursor is None:
                break
        if used:
            report.notes.append(f"{used:,} records were repaired and are compared in their repaired form")
        counted = await source.count(type_.source)
        if counted is not None and counted != report.source:
            report.notes.append(
                f"the source counted {counted:,} records and returned {report.source:,}: it changed meanwhile"
            )

    async def _take(
        self, type_: TypeMap, records: Sequence[Record], ledger: JobRecords, runs: SortedRuns, *, by_id: bool
    ) -> None:
        asked = {link for one in records for link in self._mapper.references(one)}
        asked |= {(type_.name, one.id) for one in records} if by_id else set()
        known = await ledger.targets(sorted(asked)) if asked else {}
        states = await ledger.states(type_.name, [one.id for one in records])
        for record in records:
            group = self._group(type_, record)
            expected = self._expected(record, group, known, states.get(record.id))
            if expected.fields is not None and self._canonical is not None:
                expected = expected._replace(fields=dict(await self._canonical(type_.target, expected.fields)))
            key = known.get((type_.name, record.id)) if by_id else self._mapper.key(record)
            runs.add(f" {type_.name} {record.id}" if key is None else key, "ours", *expected)

    def _group(self, type_: TypeMap, record: Record) -> str | None:
        if type_.group is None:
            return None
        groups = self._reports[type_.name].groups
        name = redacted(value_at(record, type_.group)).strip('"')
        if name not in groups and len(groups) >= MOST_GROUPS:
            name = "(others)"
        return name

    def _expected(
        self,
        record: Record,
        group: str | None,
        known: Mapping[tuple[str, str], str],
        state: tuple[RecordState, str] | None,
    ) -> _ExpectedRecord:
        mapped = self._mapper.map(record, lambda type_, id_: known.get((type_, id_)))
        if isinstance(mapped, MappedRecord):
            code, reason = _excuse(state)
            for link in mapped.relations if code is None else ():
                if link.target_id is None or link.field in mapped.fields:
                    self._reports[record.type].relations[link.field]["source"] += 1
            return _ExpectedRecord(record.type, record.id, group, code, reason, dict(mapped.fields))
        code = _CODES.get(mapped.state, DifferenceCode.REJECTED)
        return _ExpectedRecord(record.type, record.id, group, code, str(mapped), None)

    async def read_target(self, target: RecordTarget, runs: SortedRuns, *, by_id: bool) -> None:
        """Read every target record into the runs; report those without a key of expected at once."""
        async for key, written in target.read_all(self._target):
            if not key and not by_id:
                self._extra("", written.id, "it has no key from the migration")
                continue
            fields = None if written.fields is None else dict(written.fields)
            runs.add(written.id if by_id else key, "theirs", written.id, fields)

    async def compare(self, runs: SortedRuns) -> None:
        for place, (key, rows) in enumerate(runs.groups()):
            expected, actual = self._sides(key, rows)
            if expected:
                self._classify(key, expected, actual)
            elif actual:
                self._extra(key, actual[0].id, "not in the source")
            if place % _BREATH == 0:
                await asyncio.sleep(0)

    def _sides(self, key: str, rows: Iterable[list[Any]]) -> tuple[list[_ExpectedRecord], list[_ActualRecord]]:
        """Return the first records of one key per side; report all beyond the first."""
        expected: list[_ExpectedRecord] = []
        actual: list[_ActualRecord] = []
        for side, *values in rows:
            if side == "ours":
                one = _ExpectedRecord(values[0], values[1], values[2], _code(values[3]), values[4], values[5])
                self._count(one, "source")
                if expected and one.code is None:
                    reason = f"{expected[0].type} {expected[0].id} has the same key"
                    self._report(RecordDifference(DifferenceCode.DUPLICATE_KEY, one.type, key, one.id, None, reason))
                if len(expected) < _SIDE_BY_SIDE:
                    expected.append(one)
            else:
                if actual:
                    name = expected[0].type if expected else self.types[0].name
                    self._reports[name].target += 1
                    reason = f"{actual[0].id} is the same record"
                    self._report(RecordDifference(DifferenceCode.DOUBLED, name, key, None, values[0], reason))
                if len(actual) < _SIDE_BY_SIDE:
                    actual.append(_ActualRecord(*values))
        return expected, actual

    def _classify(self, key: str, expected: Sequence[_ExpectedRecord], actual: Sequence[_ActualRecord]) -> None:
        """Classify the records of one key: one of them should be in the target, or none."""
        wanted = [one for one in expected if one.fields is not None]
        for one in expected:
            if one.fields is None:
                self._left(key, one, actual if not wanted else ())
        if actual:
            name = (wanted or expected)[0].type
            self._reports[name].target += 1
        if not wanted:
            return
        if not actual:
            self._missing(key, wanted[0])
            return
        self._count(wanted[0], "target")
        self._same_or_not(key, wanted, actual)

    def _same_or_not(self, key: str, wanted: Sequence[_ExpectedRecord], actual: Sequence[_ActualRecord]) -> None:
        first, there = wanted[0], actual[0]
        for name, counts in self._reports[first.type].relations.items():
            value = ((first.fields if there.fields is None else there.fields) or {}).get(name)
            counts["target"] += len(value) if isinstance(value, list) else value is not None
        if there.fields is None:
            note = "the target does not return fields: only existence was compared"
            report = self._reports[first.type]
            report.notes += [] if note in report.notes else [note]
        found = [self._mapper.changed_fields(one.type, one.fields or {}, there.fields) for one in wanted]
        if any(not differing for differing in found):
            self._reports[first.type].same += 1
            self._count(first, "same")
            return
        reason = f"{', '.join(change.field for change in found[0])} differ from the source"
        changed = RecordDifference(DifferenceCode.DIFFERENT, first.type, key, first.id, there.id, reason)
        self._report(changed._replace(changes=tuple(found[0])))

    def _left(self, key: str, one: _ExpectedRecord, actual: Sequence[_ActualRecord]) -> None:
        """Report a record that the map rejects or skips; it should not be in the target either."""
        code = one.code or DifferenceCode.REJECTED
        if actual and code is DifferenceCode.SKIPPED:
            reason = f"skipped by the map, but in the target: {one.reason}"
            self._report(RecordDifference(DifferenceCode.EXTRA, one.type, key, one.id, actual[0].id, reason))
            return
        found = actual[0].id if actual else None
        self._report(RecordDifference(code, one.type, key, one.id, found, one.reason, code in EXPLAINED_CODES))

    def _missing(self, key: str, one: _ExpectedRecord) -> None:
        code = one.code or DifferenceCode.MISSING
        reason = one.reason or "not in the target"
        self._report(RecordDifference(code, one.type, key, one.id, None, reason, code in EXPLAINED_CODES))

    def _extra(self, key: str, id_: str, reason: str) -> None:
        first = self.types[0]
        self._reports[first.name].target += 1
        self._report(RecordDifference(DifferenceCode.EXTRA, first.name, key, None, id_, reason, first.extra))

    def _count(self, one: _ExpectedRecord, what: str) -> None:
        if one.group is not None:
            groups = self._reports[one.type].groups
            counts = groups.setdefault(one.group, {"source": 0, "target": 0, "same": 0})
            counts[what] += 1

    def _report(self, difference: RecordDifference) -> None:
        difference = difference._replace(key=difference.key.strip())
        self._reports[difference.type].tell(difference)
        if self._on_difference is not None:
            self._on_difference(difference)


def _mark(id_: str, given: str) -> str:
    """Return a short digest of what the source says of a record."""
    return content_digest([id_, given])[:_MARK]


def _unrepaired(
    page: RecordPage, repairs: Mapping[str, str]
) -> tuple[Sequence[Record], Sequence[UnreadableRecord], Sequence[str]]:
    """Split a page into records and unreadable ones without a repair, and the ids of the others. Pure."""
    records = [(one, repairs.get(_mark(one.id, encode_record(one)[0] or ""))) for one in page.records]
    unreadable = [(one, repairs.get(_mark(one.id, ""))) for one in page.unreadable]
    ids = [id_ for _, id_ in (*records, *unreadable) if id_ is not None]
    return [one for one, id_ in records if id_ is None], [one for one, id_ in unreadable if id_ is None], ids


_CODES = {
    RecordState.WAITING: DifferenceCode.WAITING,
    RecordState.SKIPPED: DifferenceCode.SKIPPED,
    RecordState.REJECTED: DifferenceCode.REJECTED,
    RecordState.FAILED: DifferenceCode.FAILED,
}


def _excuse(state: tuple[RecordState, str] | None) -> tuple[DifferenceCode | None, str]:
    """Return what the job says about a record that should be in the target."""
    if state is None or state[0] not in _CODES:
        return None, ""
    return _CODES[state[0]], state[1] or str(state[0])


def _code(name: str | None) -> DifferenceCode | None:
    return None if name is None else DifferenceCode(name)
