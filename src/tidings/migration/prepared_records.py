"""Source rows mapped, linked and deduplicated, ready to be written, or the reason why not.

Links are looked up for a whole chunk at once. Records that are equal in the target are not written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ..store.port import Row, Store
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Fields, Record, SupportsCanonicalForm
from .crosswalk import CrosswalkEntry, Link, to_json
from .error_policy import ACCOUNT_ERRORS, REJECTING_ERRORS, error_fingerprint
from .jobs import PlannedAction
from .mapping.mapped_record import MappedRecord, RejectedRecord, TargetIdLookup, redacted, schema_mismatch
from .mapping.rules import OWN_ID
from .record_states import RecordState


@dataclass(slots=True)
class PreparedRecord:
    """One record to be written."""

    seq: int
    id: str
    key: str
    fields: Fields
    hash: str
    known: str | None  # its id in the target, if known
    attempts: Mapping[str, int]
    links: bool  # a link is still open and is written later
    row: Row = field(repr=False)


class RecordResults:
    """Results of records, to be committed in one transaction."""

    def __init__(self) -> None:
        self.moves: list[dict[str, Any]] = []
        self.plain: list[tuple[int, str, str]] = []  # written without further details: seq, target id, hash
        self.links: list[tuple[str, str, str]] = []  # for the crosswalk: source id, target id, hash
        self.log: list[tuple[int, str, str | None, str | None]] = []
        self.written = 0
        self.unchanged = 0
        self.fingerprints: dict[str, ErrorKind] = {}  # candidates for pausing the job
        self.exceptions: dict[str, BaseException] = {}  # raised by hooks and connectors, one per kind, for the log

    def __len__(self) -> int:
        return len(self.moves) + len(self.plain)

    def move(self, seq: int, state: RecordState, **more: Any) -> None:
        """Set a record's next state; None values are omitted."""
        given = {name: value for name, value in more.items() if value is not None}
        self.moves.append({"seq": seq, "state": state.value, **given})

    def add_log(self, seq: int, what: str, code: str | None = None, reason: str | None = None) -> None:
        self.log.append((seq, what, code, None if reason is None else reason[:500]))

    def add_rejected(self, row: Row, rejected: RejectedRecord, **more: Any) -> None:
        """Record that the map rejected or skipped a record, or that it waits."""
        self.move(
            row["seq"],
            rejected.state,
            failure=None if rejected.failure is None else rejected.failure.value,
            field=rejected.field,
            fingerprint=rejected.fingerprint,
            reason=str(rejected)[:1000],
            **more,
        )
        self.add_log(row["seq"], rejected.state.value, rejected.rule, str(rejected))
        if rejected.failure is ErrorKind.PROGRAM:
            self.fingerprints[rejected.fingerprint] = ErrorKind.PROGRAM
        if rejected.cause is not None and not isinstance(rejected.cause, ConnectorError):
            self.exceptions[rejected.fingerprint] = rejected.cause

    def add_dead_letter(self, seq: int, state: RecordState, error: ConnectorError, type_: str, **more: Any) -> None:
        """Turn a record into a dead letter."""
        mark = error_fingerprint(error.failure, type_, error.field, error.code, error.reason)
        self.move(
            seq,
            state,
            failure=error.failure.value,
            field=error.field,
            fingerprint=mark,
            reason=error.reason[:1000],
            **more,
        )
        self.fingerprints[mark] = error.failure

    def add_unchanged(self, item: PreparedRecord, **more: Any) -> None:
        """Record that the target already has the same content."""
        self.move(item.seq, RecordState.UNCHANGED, hash=item.hash, target_id=item.known, **more)
        self.links.append((item.id, item.known or "", item.hash))
        self.unchanged += 1


_SLICE = 50  # records mapped between two yields to the event loop


class RecordPreparer:
    """Prepares records of one type. With `ahead`, links to planned records count as resolved (dry run)."""

    def __init__(self, store: Store, opened: OpenedJob, type_: str, round_: int, *, ahead: bool = False) -> None:
        self._store, self._opened = store, opened
        self._type = type_
        self._round = round_
        self._ahead = ahead
        self.has_own_key = opened.job.type(type_).key != OWN_ID
        self.hook_errors: list[tuple[Row, ConnectorError]] = []  # that do not reject their record, of the last call
        self._has_links = any(rule.reference is not None for rule in opened.job.type(type_).fields)

    async def prepare(self, rows: Sequence[Row], results: RecordResults) -> list[PreparedRecord]:
        """Map records; return those to be written. The others are in `results` with their reason.

        A hook's error about its account (rate limit, quota, credentials) ends the call: the rest stays open.
        """
        self.hook_errors = []
        records = [Record(self._type, row["source_id"], orjson.loads(row["raw"])) for row in rows]
        known, lookup = await self._known(records)
        schema, target = await self._opened.schema(self._type), self._opened.job.type(self._type).target
        items: list[PreparedRecord] = []
        for n, (row, record) in enumerate(zip(rows, records, strict=True)):
            if n % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            made = self._opened.mapper.map(record, lookup)
            if isinstance(made, MappedRecord) and schema is not None:
                made = schema_mismatch(self._type, record.id, made, schema) or made
            if isinstance(made, RejectedRecord):
                if isinstance(made.cause, ConnectorError) and made.failure not in REJECTING_ERRORS:
                    self.hook_errors.append((row, made.cause))
                    if made.failure in ACCOUNT_ERRORS:
                        break
                    continue
                results.add_rejected(row, made, action=_action(made) if self._ahead else None)
                continue
            if isinstance(self._opened.target, SupportsCanonicalForm):
                try:
                    made = made._replace(fields=await self._opened.target.canonical(target, made.fields))
                except ConnectorError as error:
                    if error.failure is not ErrorKind.VALIDATION:
                        raise
                    value = redacted(made.fields.get(error.field or ""))
                    rejected = RejectedRecord(self._type, record.id, error.field, value, "target", error.reason)
                    results.add_rejected(row, rejected, action=_action(rejected) if self._ahead else None)
                    continue
            items.append(_item(row, record.id, made, known.get((self._type, record.id))))
        return items

    async def _known(self, records: Sequence[Record]) -> tuple[dict[Link, CrosswalkEntry], TargetIdLookup]:
        own = {(self._type, record.id) for record in records}
        links: set[Link] = set()
        if self._has_links:
            links = {link for record in records for link in self._opened.mapper.references(record)}
        known = await self._opened.crosswalk.of(own | links)
        coming: set[Link] = set()
        if self._ahead and (open_ := links - known.keys()):
            asked = to_json([{"type": type_, "id": id_} for type_, id_ in open_])
            found = await self._store.read("job_parents", job=self._opened.n, round=self._round, asked=asked)
            coming = {(row["type"], row["source_id"]) for row in found}

        def lookup(type_: str, id_: str) -> str | None:
            there = known.get((type_, id_))
            if there is not None:
                return there.target_id
            return f"@{type_}/{id_}" if (type_, id_) in coming else None

        return known, lookup

    async def first_of_each_key(self, items: Sequence[PreparedRecord], results: RecordResults) -> list[PreparedRecord]:
        """Of several records with one key keep the first; the others become dead letters."""
        keys = to_json([item.key for item in items])
        rows = await self._store.read(
            "job_key_owners", job=self._opened.n, type=self._type, round=self._round, keys=keys
        )
        owners: dict[str, Row] = {}
        for row in rows:
            owners.setdefault(row["key"], row)
        kept: list[PreparedRecord] = []
        for item in items:
            owner = owners.get(item.key)
            if owner is None or owner["seq"] == item.seq:
                kept.append(item)
                continue
            other = f"{self._type} {owner['source_id']}"
            reason = f"{self._type} {item.id}: duplicate key {item.key!r}, already used by {other} (rule: key)"
            error = ConnectorError(ErrorKind.VALIDATION, reason, field="key", code="duplicate_key")
            results.add_dead_letter(item.seq, RecordState.REJECTED, error, self._type)
            results.add_log(item.seq, "rejected", "duplicate_key", reason)
        return kept


def _item(row: Row, id_: str, made: MappedRecord, known: CrosswalkEntry | None) -> PreparedRecord:
    is_open = any(relation.target_id is None for relation in made.relations)
    return PreparedRecord(
        row["seq"],
        id_,
        made.key,
        made.fields,
        made.hash,
        None if known is None else known.target_id,
        orjson.loads(row["attempts"]),
        is_open,
        {**row, "raw": None, "same": known is not None and known.hash == made.hash},
    )


def _action(rejected: RejectedRecord) -> PlannedAction:
    return {RecordState.SKIPPED: PlannedAction.SKIPPED, RecordState.WAITING: PlannedAction.UNRESOLVED}.get(
        rejected.state, PlannedAction.REJECTED
    )
