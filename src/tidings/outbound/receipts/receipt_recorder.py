"""Expect receipts by their provider ids, record them idempotently, and settle uncertain messages that they prove sent.

Invariant: repeated or reordered receipts change nothing. Read implies delivered, and delivered outweighs an
earlier failure. A receipt that arrives before its message is settled waits under the provider's id. A receipt
that proves an uncertain send settles it in the same transaction, and one that reports an opt-out suppresses
the recipient. A later failure never resends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from ...kernel import task_actions as kernel
from ...kernel.decisions import sanitize_text
from ...model.task import Task, TaskState, Transition
from ...store.port import OrderingKey, Row, Step, Store
from .base import CallbackReader, Receipt, ReceiptStatus, valid_name

PAGE = 500  # provider ids per transaction

ChannelReceipt = tuple[str, Receipt]  # a channel and a receipt


class RecordedReceipts(NamedTuple):
    """Counts of new receipts, repeated ones, and those without a known message (yet)."""

    new: int = 0
    again: int = 0
    strange: int = 0


def expect_receipts(moves: Sequence[tuple[Task, Transition]], readers: Mapping[str, CallbackReader]) -> list[Step]:
    """One step that remembers the provider ids of all messages sent on channels with callbacks."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for task, move in moves:
        reader = readers.get(task.queue)
        if reader is None or move.to is not TaskState.DONE or not move.detail:
            continue
        names = [name for name in reader.names(move.detail) if valid_name(name)]
        for name in names:
            found.setdefault(
                (task.queue, name),
                {
                    "channel": task.queue,
                    "name": name,
                    "task": task.id,
                    "claim_no": move.claim_no,
                    "last": name is names[-1],
                },
            )
    return [Step("receipt_expect", {"names": orjson.dumps([*found.values()]).decode()})] if found else []


def merge_receipts(receipts: Sequence[ChannelReceipt]) -> list[Row]:
    """One row per provider id with the earliest time of each status. Pure."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for channel, receipt in receipts:
        if receipt.what is ReceiptStatus.SENT and receipt.message is None:
            continue  # the answer to our request already said so
        row = rows.setdefault((channel, receipt.name), {"channel": channel, "name": receipt.name})
        row["message"] = row.get("message") or receipt.message
        match receipt.what:
            case ReceiptStatus.UNDELIVERED:
                if row.setdefault("undelivered_at", receipt.at) == receipt.at:
                    row["reason"] = None if receipt.reason is None else sanitize_text(receipt.reason)
                    row["category"] = receipt.category
                    row |= {"opted_out": True} if receipt.opted_out else {}
            case ReceiptStatus.DELIVERED | ReceiptStatus.READ:
                row["delivered_at"] = min(row.get("delivered_at", receipt.at), receipt.at)
                if receipt.what is ReceiptStatus.READ:
                    row["read_at"] = min(row.get("read_at", receipt.at), receipt.at)
    return list(rows.values())


async def record_receipts(store: Store, receipts: Sequence[ChannelReceipt]) -> RecordedReceipts:
    """Write new receipts, one page per transaction; written pages stay if a later one fails."""
    rows = merge_receipts(receipts)
    folded = RecordedReceipts()
    for first in range(0, len(rows), PAGE):
        page = await _fold(store, rows[first : first + PAGE])
        folded = RecordedReceipts(*map(sum, zip(folded, page, strict=True)))
    return folded


async def _fold(store: Store, rows: Sequence[Row]) -> RecordedReceipts:
    encoded = orjson.dumps(rows).decode()
    proved = [row for row in rows if row["message"] is not None]
    uncertain = await _uncertain(store, proved) if proved else []
    steps, keys = settle_steps(uncertain)
    place = len(steps)
    steps += [Step("receipt_seen", {"rows": encoded}), Step("receipt_fold", {"rows": encoded})]
    if opted_out := [{"channel": row["channel"], "name": row["name"]} for row in rows if row.get("opted_out")]:
        steps.append(Step("suppression_receipted", {"rows": orjson.dumps(opted_out).decode()}))
    done = await store.change(steps, keys=keys)
    if any(done[:place]):
        await store.hint()
    news = done[place + 1]
    strange = sum(row["task"] is None for row in news)
    return RecordedReceipts(len(news) - strange, len(rows) - len(news), strange)


async def _uncertain(store: Store, rows: Sequence[Row]) -> list[Row]:
    named = [{"channel": row["channel"], "message": row["message"]} for row in rows]
    found = await store.read("receipt_proved", rows=orjson.dumps(named).decode())
    return list({row["id"]: row for row in found if is_uncertain(row)}.values())


def is_uncertain(row: Row) -> bool:
    """Whether a receipt settles the task: it waits for a retry, or its outcome is unknown."""
    return bool(row["state"] == "pending" or (row["state"] == "failed" and row["unknown"]))


def settle_steps(rows: Sequence[Row]) -> tuple[list[Step], set[OrderingKey]]:
    """The steps that settle these tasks as done, and their ordering keys."""
    steps: list[Step] = []
    for row in rows:
        steps += kernel.sent_evidence_steps(row, "a receipt proves that it was sent", before=len(steps))
    return steps, {(row["queue"], row["ordering_key"]) for row in rows if row["ordering_key"] is not None}
