"""The tally of a broadcast: how many recipients stand where, exact at every look.

One statement reads it all, so the parts always add up to the whole, whatever dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from ...model.broadcast import TALLY_WORDS, BroadcastTally, broadcast_tally
from ...store.port import Row, Step, Store

MAX_COUNT_ROWS = 500  # rows of counts that are summed up at the latest


async def read_tallies(store: Store, lots: Sequence[int]) -> dict[int, BroadcastTally]:
    """The standing of these lots, all at one moment."""
    if not lots:
        return {}
    rows = await store.read("broadcast_tally", group_ids=orjson.dumps(list(lots)).decode())
    return {row["group_id"]: broadcast_tally(row) for row in rows}


def tally_step(group_id: int, only_if: int | None = None) -> Step:
    """The same for one lot, within a transaction."""
    return Step("broadcast_tally", {"group_ids": orjson.dumps([group_id]).decode()}, only_if)


async def compact_counts(store: Store, group_id: int, tally: BroadcastTally) -> None:
    """Sum the counts up where they have become many; SQLite keeps one row each by itself."""
    if tally.pieces > MAX_COUNT_ROWS and store.dialect == "postgres":
        await store.write([Step("group_pack", {"group_id": group_id})])


def combined_report(rows: Sequence[Row], found: dict[int, BroadcastTally]) -> dict[str, Any]:
    """Several broadcasts as one: how many there are in which state, and their recipients together."""
    sums: Counter[str] = Counter()
    for tally in found.values():
        sums.update(tally.counts)
    return {
        "broadcasts": len(rows),
        "states": dict(sorted(Counter(row["state"] for row in rows).items())),
        "total": sum(tally.total for tally in found.values()),
        "counts": {word: sums[word] for word in TALLY_WORDS},
    }
