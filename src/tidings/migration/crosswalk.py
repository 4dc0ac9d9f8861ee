"""The crosswalk: which record of the target is which of the source, and what it was written as."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

import orjson

from ..store.port import Row, Step, Store
from .connectors.port import Fields, RecordState

Link = tuple[str, str]  # type, source id
_PAGE = 500


class CrosswalkEntry(NamedTuple):
    """A record that is in the target."""

    target_id: str
    hash: str | None


class Crosswalk:
    """Of one pair of systems of a tenant."""

    def __init__(self, store: Store, pair: int) -> None:
        self.pair = pair
        self._store = store

    async def of(self, asked: Collection[Link]) -> dict[Link, CrosswalkEntry]:
        """Those of these that are in the target."""
        if not asked:
            return {}
        wanted = json_parameter([{"type": type_, "id": id_} for type_, id_ in asked])
        rows = await self._store.read("crosswalk_of", pair=self.pair, asked=wanted)
        return {
            (row["type"], row["source_id"]): CrosswalkEntry(row["target_id"], row["hash"]) for row in rows
        }

    async def owners(self, type_: str, target_ids: Collection[str]) -> dict[str, str]:
        """Whose these records of the target are: their source ids."""
        if not target_ids:
            return {}
        ids = json_parameter(list(target_ids))
        rows = await self._store.read("crosswalk_owners", pair=self.pair, type=type_, ids=ids)
        return {row["target_id"]: row["source_id"] for row in rows}

    def putting(self, job: int, type_: str, links: Sequence[tuple[str, str, str]]) -> Step:
        """What was written: id, the target's id, hash."""
        return Step(
            "crosswalk_put",
            {"pair": self.pair, "type": type_, "job": job, "rows": json_parameter(list(links))},
        )

    def dropping(self, type_: str, links: Sequence[tuple[str, str]]) -> Step:
        """What was taken out again: id, the target's id."""
        return Step("crosswalk_drop", {"pair": self.pair, "type": type_, "rows": json_parameter(list(links))})

    def taking(self, job: int, type_: str, id_: str, target_id: str, hash_: str | None) -> list[Step]:
        """This record of the target is that one; Outrun if it is another's already. One at a time."""
        taken = {"pair": self.pair, "source_id": id_, "target_id": target_id, "hash": hash_}
        return [
            Step("job_type_hold", {"job": job, "type": type_}, needed=True),
            Step("crosswalk_take", {**taken, "job": job, "type": type_}, needed=True),
        ]


class StoredJobRecords:
    """What a job knows of its records, for verification (`verify.Ledger`)."""

    def __init__(self, store: Store, crosswalk: Crosswalk, job: int, round_: int) -> None:
        self._store = store
        self._crosswalk = crosswalk
        self._job = job
        self._round = round_

    async def targets(self, asked: Sequence[Link]) -> Mapping[Link, str]:
        """The target's ids by type and source id, as far as there are any."""
        return {link: known.target_id for link, known in (await self._crosswalk.of(asked)).items()}

    async def standings(self, type_: str, ids: Sequence[str]) -> Mapping[str, tuple[RecordState, str]]:
        """Where records stand, and why, by source id."""
        rows: list[Row] = await self._store.read(
            "job_record_states",
            job=self._job,
            type=type_,
            round=self._round,
            ids=json_parameter(list(ids)),
        )
        return {row["source_id"]: (RecordState(row["state"]), row["reason"] or "") for row in rows}

    async def mended(self, type_: str) -> AsyncIterator[tuple[str, str]]:
        """The records of a type that were mended: their ids, and what the source had said of them."""
        after, where = 0, {"job": self._job, "type": type_, "round": self._round}
        while rows := await self._store.read("job_repaired_page", **where, after=after, limit=_PAGE):
            for row in rows:
                yield row["source_id"], row["original"]
            after = rows[-1]["seq"]

    async def repaired_fields(self, type_: str, ids: Sequence[str]) -> Mapping[str, Fields]:
        """Their fields by id."""
        where = {"job": self._job, "type": type_, "ids": json_parameter(list(ids))}
        rows = await self._store.read("job_record_repaired", **where)
        return {row["source_id"]: orjson.loads(row["raw"]) for row in rows}


def json_parameter(rows: object) -> str:
    """A list as a statement takes it."""
    return orjson.dumps(rows).decode()
