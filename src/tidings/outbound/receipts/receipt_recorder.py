"""Folding: receipts become facts about messages, all of a call-back's in one transaction.

Invariant: a fact is written once, however often and in whatever order it is told. Read implies delivered, and
delivered outweighs a failure that was told before. A receipt whose message is not known yet waits for it
under its name; the send's own settle joins them. What was in doubt and is now proved is done, in the same
transaction. A failure that is told later sends nothing again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from ...kernel import task_actions as kernel
from ...kernel.decisions import sanitize_text
from ...store.port import OrderingKey, Row, Step, Store
from .base import Receipt, ReceiptStatus

PAGE = 500  # names of one transaction

ChannelReceipt = tuple[str, Receipt]  # a channel and what was told of one of its messages


class RecordedReceipts(NamedTuple):
    """How many names had news, were told again, and have no message that is known (yet)."""

    new: int = 0
    again: int = 0
    strange: int = 0


def merge_receipts(told: Sequence[ChannelReceipt]) -> list[Row]:
    """One row for each name: the earliest of each fact. Pure."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for channel, receipt in told:
        if receipt.what is ReceiptStatus.SENT and receipt.message is None:
            continue  # whoever answered our request has said so already
        row = rows.setdefault((channel, receipt.name), {"channel": channel, "name": receipt.name})
        row["message"] = row.get("message") or receipt.message
        match receipt.what:
            case ReceiptStatus.UNDELIVERED:
                if row.setdefault("undelivered_at", receipt.at) == receipt.at:
                    row["reason"] = None if receipt.reason is None else sanitize_text(receipt.reason)
                    row["category"] = receipt.category
            case ReceiptStatus.DELIVERED | ReceiptStatus.READ:
                row["delivered_at"] = min(row.get("delivered_at", receipt.at), receipt.at)
                if receipt.what is ReceiptStatus.READ:
                    row["read_at"] = min(row.get("read_at", receipt.at), receipt.at)
    return list(rows.values())


async def record_receipts(store: Store, told: Sequence[ChannelReceipt]) -> RecordedReceipts:
    """Write down what is new, a page a transaction; a page that was written stays when the next fails."""
    rows = merge_receipts(told)
    folded = RecordedReceipts()
    for first in range(0, len(rows), PAGE):
        page = await _fold(store, rows[first : first + PAGE])
        folded = RecordedReceipts(*map(sum, zip(folded, page, strict=True)))
    return folded


async def _fold(store: Store, rows: Sequence[Row]) -> RecordedReceipts:
    encoded = orjson.dumps(rows).decode()
    proved = [row for row in rows if row["message"] is not None]
    doubtful = await _doubtful(store, proved) if proved else []
    steps, keys = settle_steps(doubtful)
    place = len(steps)
    steps += [Step("receipt_seen", {"rows": encoded}), Step("receipt_fold", {"rows": encoded})]
    done = await store.change(steps, keys=keys)
    if any(done[:place]):
        await store.hint()
    news = done[-1]
    strange = sum(row["task"] is None for row in news)
    return RecordedReceipts(len(news) - strange, len(rows) - len(news), strange)


async def _doubtful(store: Store, rows: Sequence[Row]) -> list[Row]:
    named = [{"channel": row["channel"], "message": row["message"]} for row in rows]
    found = await store.read("receipt_proved", rows=orjson.dumps(named).decode())
    return list({row["id"]: row for row in found if is_uncertain(row)}.values())


def is_uncertain(row: Row) -> bool:
    """Whether a receipt settles it: it waits for another try, or nobody knew whether it was sent."""
    return bool(row["state"] == "pending" or (row["state"] == "failed" and row["unknown"]))


def settle_steps(rows: Sequence[Row]) -> tuple[list[Step], set[OrderingKey]]:
    """The moves of these tasks to done, and the order keys whose turn they pass on."""
    steps: list[Step] = []
    for row in rows:
        steps += kernel.sent_evidence_steps(row, "a receipt says that it was sent", before=len(steps))
    return steps, {(row["queue"], row["ordering_key"]) for row in rows if row["ordering_key"] is not None}
