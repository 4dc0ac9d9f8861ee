"""The crosswalk: which target record belongs to which source record, with the hash of its content."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

import orjson

from ..store.port import Row, Step, Store
from .connectors.port import Fields
from .record_states import RecordState

Link = tuple[str, str]  # type, source id
_PAGE = 500


class CrosswalkEntry(NamedTuple):
    """A record that is in the target."""

    target_id: str
    hash: str | None


class Crosswalk:
    """The crosswalk of one pair of systems of a tenant."""

    def __init__(self, store: Store, pair: int) -> None:
        self.pair, self._store = pair, store

    async def of(self, asked: Collection[Link]) -> dict[Link, CrosswalkEntry]:
        """Return the entries of these source records."""
        if not asked:
            return {}
        wanted = to_json([{"type": type_, "id": id_} for type_, id_ in asked])
        rows = await self._store.read("crosswalk_of", pair=self.pair, asked=wanted)
        return {(row["type"], row["source_id"]): CrosswalkEntry(row["target_id"], row["hash"]) for row in rows}

    async def owners(self, type_: str, target_ids: Collection[str]) -> dict[str, str]:
        """Return the source ids that own these target records."""
        if not target_ids:
            return {}
        ids = to_json(list(target_ids))
        rows = await self._store.read("crosswalk_owners", pair=self.pair, type=type_, ids=ids)
        return {row["target_id"]: row["source_id"] for row in rows}

    def put_step(self, job: int, type_: str, links: Sequence[tuple[str, str, str]]) -> Step:
        """Return the step that stores written records: source id, target id, hash."""
        return Step("crosswalk_put", {"pair": self.pair, "type": type_, "job": job, "rows": to_json(list(links))})

    def drop_step(self, type_: str, links: Sequence[tuple[str, str]]) -> Step:
        """Return the step that removes records: source id, target id."""
        return Step("crosswalk_drop", {"pair": self.pair, "type": type_, "rows": to_json(list(links))})

    def claim_steps(self, job: int, type_: str, id_: str, target_id: str, hash_: str | None) -> list[Step]:
        """Return the steps that claim one target record; WriteConflict if another record owns it."""
        taken = {"pair": self.pair, "source_id": id_, "target_id": target_id, "hash": hash_}
        return [
            Step("job_type_hold", {"job": job, "type": type_}, needed=True),
            Step("crosswalk_take", {**taken, "job": job, "type": type_}, needed=True),
        ]


class StoredJobRecords:
    """What a job stores about its records, for verification (`verification.JobRecords`)."""

    def __init__(self, store: Store, crosswalk: Crosswalk, job: int, round_: int) -> None:
        self._store, self._crosswalk, self._job = store, crosswalk, job
        self._round = round_

    async def targets(self, asked: Sequence[Link]) -> Mapping[Link, str]:
        """Return target ids by type and source id, where known."""
        return {link: known.target_id for link, known in (await self._crosswalk.of(asked)).items()}

    async def states(self, type_: str, ids: Sequence[str]) -> Mapping[str, tuple[RecordState, str]]:
        """Return state and reason by source id."""
        rows: list[Row] = await self._store.read(
            "job_record_states", job=self._job, type=type_, round=self._round, ids=to_json(list(ids))
        )
        return {row["source_id"]: (RecordState(row["state"]), row["reason"] or "") for row in rows}

    async def repairs(self, type_: str) -> AsyncIterator[tuple[str, str]]:
        """Yield the repaired records of a type: their ids, and the fields that the source gave."""
        after, where = 0, {"job": self._job, "type": type_, "round": self._round}
        while rows := await self._store.read("job_repaired_page", **where, after=after, limit=_PAGE):
            for row in rows:
                yield row["source_id"], row["original"]
            after = rows[-1]["seq"]

    async def repaired_fields(self, type_: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        """Return repaired fields by id."""
        where = {"job": self._job, "type": type_, "ids": to_json(list(ids))}
        rows = await self._store.read("job_record_repaired", **where)
        return {row["source_id"]: orjson.loads(row["raw"]) for row in rows}


def to_json(rows: object) -> str:
    """Encode a list as a statement parameter."""
    return orjson.dumps(rows).decode()
