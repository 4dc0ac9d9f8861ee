"""Preparing records: rows of a batch become what the target shall have, or the reason why not.

Links are looked up for a whole chunk at once. What the target has already, the same, is not written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ..store.port import Row, Store
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Fields, Record, RecordState
from .crosswalk import CrosswalkEntry, Link, json_parameter
from .error_policy import error_fingerprint
from .jobs import PlannedAction
from .mapping.mapped_record import MappedRecord, RejectedRecord
from .mapping.rules import OWN_ID
from .mapping.schema_check import schema_mismatch


@dataclass(slots=True)
class PreparedRecord:
    """One record on its way."""

    seq: int
    id: str
    key: str
    fields: Fields
    hash: str
    known: str | None  # its id in the target
    attempts: Mapping[str, int]
    links: bool  # a link was left open, and is written later
    row: Row = field(repr=False)


class RecordResults:
    """What became of records, to be written in one transaction."""

    def __init__(self) -> None:
        self.moves: list[dict[str, Any]] = []
        self.plain: list[tuple[int, str, str]] = []  # written, without more to say: place, target's id, hash
        self.links: list[tuple[str, str, str]] = []  # for the crosswalk: id, target's id, hash
        self.log: list[tuple[int, str, str | None, str | None]] = []
        self.written = 0
        self.unchanged = 0
        self.fingerprints: dict[str, ErrorKind] = {}  # those that may stop the job

    def __len__(self) -> int:
        return len(self.moves) + len(self.plain)

    def move(self, seq: int, standing: RecordState, **more: Any) -> None:
        """A record's next state; what is None needs not be said."""
        said = {name: value for name, value in more.items() if value is not None}
        self.moves.append({"seq": seq, "state": standing.value, **said})

    def tell(self, seq: int, what: str, code: str | None = None, reason: str | None = None) -> None:
        """A line of the record's log."""
        self.log.append((seq, what, code, None if reason is None else reason[:500]))

    def refuse(self, row: Row, refused: RejectedRecord, **more: Any) -> None:
        """The map lets it through not, or not yet, or by decision not."""
        self.move(
            row["seq"],
            refused.standing,
            failure=None if refused.failure is None else refused.failure.value,
            field=refused.field,
            fingerprint=refused.fingerprint,
            reason=str(refused)[:1000],
            **more,
        )
        self.tell(row["seq"], refused.standing.value, refused.rule, str(refused))
        if refused.failure is ErrorKind.PROGRAM:
            self.fingerprints[refused.fingerprint] = ErrorKind.PROGRAM

    def set_aside(
        self, seq: int, standing: RecordState, trouble: ConnectorError, type_: str, **more: Any
    ) -> None:
        """It has its end, and not in the target."""
        mark = error_fingerprint(trouble.failure, type_, trouble.field, trouble.code, trouble.reason)
        self.move(
            seq,
            standing,
            failure=trouble.failure.value,
            field=trouble.field,
            fingerprint=mark,
            reason=trouble.reason[:1000],
            **more,
        )
        self.fingerprints[mark] = trouble.failure

    def same(self, item: PreparedRecord, **more: Any) -> None:
        """The target has it already."""
        self.move(item.seq, RecordState.UNCHANGED, hash=item.hash, target_id=item.known, **more)
        self.links.append((item.id, item.known or "", item.hash))
        self.unchanged += 1


TargetIdLookup = Callable[[str, str], str | None]

_SLICE = 50  # records that are mapped without a pause


class RecordPreparer:
    """Of one type of a job. With `ahead`, links to what is still to come count as resolved: for a plan."""

    def __init__(
        self, store: Store, opened: OpenedJob, type_: str, round_: int, *, ahead: bool = False
    ) -> None:
        self._store = store
        self._opened = opened
        self._type = type_
        self._round = round_
        self._ahead = ahead
        self.has_own_key = opened.job.type(type_).key != OWN_ID
        self._has_links = any(rule.reference is not None for rule in opened.job.type(type_).fields)

    async def prepare(self, rows: Sequence[Row], results: RecordResults) -> list[PreparedRecord]:
        """Those that are to be written; the others are in `results`, with the reason."""
        records = [Record(self._type, row["source_id"], orjson.loads(row["raw"])) for row in rows]
        known, lookup = await self._known(records)
        schema = await self._opened.schema(self._type)
        items: list[PreparedRecord] = []
        for n, (row, record) in enumerate(zip(rows, records, strict=True)):
            if n % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)  # calls under way go on meanwhile
            made = self._opened.mapper.map(record, lookup)
            if isinstance(made, MappedRecord) and schema is not None:
                made = schema_mismatch(self._type, record.id, made, schema) or made
            if isinstance(made, RejectedRecord):
                results.refuse(row, made, action=_action(made) if self._ahead else None)
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
            asked = json_parameter([{"type": type_, "id": id_} for type_, id_ in open_])
            found = await self._store.read("job_parents", job=self._opened.n, round=self._round, asked=asked)
            coming = {(row["type"], row["source_id"]) for row in found}

        def lookup(type_: str, id_: str) -> str | None:
            there = known.get((type_, id_))
            if there is not None:
                return there.target_id
            return f"@{type_}/{id_}" if (type_, id_) in coming else None

        return known, lookup

    async def first_of_each_key(
        self, items: Sequence[PreparedRecord], results: RecordResults
    ) -> list[PreparedRecord]:
        """Two records of one key would overwrite each other: the later one is set aside."""
        keys = json_parameter([item.key for item in items])
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
            reason = f"{self._type} {item.id}: the key is {item.key!r}, which {other} has (rule: key)"
            trouble = ConnectorError(ErrorKind.VALIDATION, reason, field="key", code="duplicate_key")
            results.set_aside(item.seq, RecordState.REJECTED, trouble, self._type)
            results.tell(item.seq, "rejected", "duplicate_key", reason)
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


def _action(refused: RejectedRecord) -> PlannedAction:
    return {
        RecordState.SKIPPED: PlannedAction.SKIPPED,
        RecordState.WAITING: PlannedAction.UNRESOLVED,
    }.get(refused.standing, PlannedAction.REJECTED)
