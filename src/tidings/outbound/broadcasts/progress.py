"""Progress of broadcasts: exact counts of recipients by state.

One statement reads all counts, so they always add up to the total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from ...model.broadcast import TALLY_WORDS, BroadcastTally, broadcast_tally
from ...store.port import Row, Step, Store

MAX_COUNT_ROWS = 500  # count rows at which they are compacted


async def read_tallies(store: Store, lots: Sequence[int]) -> dict[int, BroadcastTally]:
    """The tallies of these broadcasts, all at one instant."""
    if not lots:
        return {}
    rows = await store.read("broadcast_tally", group_ids=orjson.dumps(list(lots)).decode())
    return {row["group_id"]: broadcast_tally(row) for row in rows}


def tally_step(group_id: int, only_if: int | None = None) -> Step:
    """The step that reads one tally within a transaction."""
    return Step("broadcast_tally", {"group_ids": orjson.dumps([group_id]).decode()}, only_if)


async def compact_counts(store: Store, group_id: int, tally: BroadcastTally) -> None:
    """Compact the count rows when there are many; SQLite always keeps one row."""
    if tally.pieces > MAX_COUNT_ROWS and store.dialect == "postgres":
        await store.write([Step("group_pack", {"group_id": group_id})])


def combined_report(rows: Sequence[Row], found: dict[int, BroadcastTally]) -> dict[str, Any]:
    """The report of several broadcasts: counts by state, and their recipients added up."""
    sums: Counter[str] = Counter()
    for tally in found.values():
        sums.update(tally.counts)
    return {
        "broadcasts": len(rows),
        "states": dict(sorted(Counter(row["state"] for row in rows).items())),
        "total": sum(tally.total for tally in found.values()),
        "counts": {word: sums[word] for word in TALLY_WORDS},
    }
