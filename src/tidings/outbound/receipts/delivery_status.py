"""The delivery status of a message from its receipts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.time import iso
from ...store.port import Row
from .base import ReceiptStatus


def overall_status(rows: Sequence[Row]) -> ReceiptStatus | None:
    """The overall status: one undelivered part counts for the whole, else the last part decides."""
    if any(row["undelivered_at"] is not None and row["delivered_at"] is None for row in rows):
        return ReceiptStatus.UNDELIVERED
    last = [row for row in rows if row["last"]]
    if any(row["read_at"] is not None for row in last):
        return ReceiptStatus.READ
    return ReceiptStatus.DELIVERED if any(row["delivered_at"] is not None for row in last) else None


def serialize_receipts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The receipts as API fields, in order of time."""
    found = [
        {
            "at": row[f"{what}_at"],
            "what": what.value,
            "receipt": row["name"],
            "category": row["category"] if what is ReceiptStatus.UNDELIVERED else None,
            "reason": row["reason"] if what is ReceiptStatus.UNDELIVERED else None,
        }
        for row in rows
        for what in (ReceiptStatus.UNDELIVERED, ReceiptStatus.DELIVERED, ReceiptStatus.READ)
        if row[f"{what}_at"] is not None
    ]
    return [{**fact, "at": iso(fact["at"])} for fact in sorted(found, key=lambda fact: fact["at"])]


def describe_receipts(rows: Sequence[Row]) -> str | None:
    """The receipts as the end of a sentence 'sent at …'; None without any."""
    word = overall_status(rows)
    if word is None:
        return None
    if word is ReceiptStatus.UNDELIVERED:
        row = next(row for row in rows if row["undelivered_at"] is not None and row["delivered_at"] is None)
        kind = f"{row['category']} error: " if row["category"] else ""
        return f"the provider could not deliver it at {iso(row['undelivered_at'])}: {kind}{row['reason']}"
    at = min(row[f"{word}_at"] for row in rows if row["last"] and row[f"{word}_at"] is not None)
    return f"{word} at {iso(at)}"
