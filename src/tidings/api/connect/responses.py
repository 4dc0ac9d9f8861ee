"""Broadcasts and recipients as Connect's sessions and broadcasts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...store.port import Row

RECIPIENT_STATUSES = ("SCHEDULED", "PENDING", "SUCCESS", "FAIL")
_SESSION_STATUS = {"loading": "NEW", "ready": "NEW", "running": "PENDING"}  # the others: the state in capitals
_STATUS = {"waiting": "SCHEDULED", "processing": "PENDING", "sent": "SUCCESS"}  # the others: FAIL


def envelope(data: object, **meta: object) -> Row:
    """The body of a successful response."""
    return {"success": True, "data": data, **({"meta": meta} if meta else {})}


def recipient_status(recipient: Mapping[str, Any]) -> str:
    """Connect's word; a recipient that waits for another attempt is PENDING."""
    status = _STATUS.get(recipient["state"], "FAIL")
    return "PENDING" if status == "SCHEDULED" and recipient["attempts"] else status


def status_counts(counts: Mapping[str, int]) -> Row:
    """The recipients of a broadcast by Connect's words."""
    found = dict.fromkeys(RECIPIENT_STATUSES, 0)
    for state, count in counts.items():
        found[_STATUS.get(state, "FAIL")] += count
    return {**found, "TOTAL": sum(counts.values())}


def session(broadcast: Mapping[str, Any], tenant: str, addresses: Sequence[str]) -> Row:
    """A broadcast as a session."""
    content, options = broadcast["content"] or {}, broadcast["options"]
    meta = {**(content.get("data") or {}), **({"subject": content["subject"]} if content.get("subject") else {})}
    message = {"templateId": broadcast["template"]} if broadcast["template"] else {"content": content.get("text", "")}
    times = {"scheduledTimestamp": broadcast["scheduled_at"]} if broadcast["scheduled_at"] else {}
    interval = options.get("attemptIntervalMinutes")
    return {
        "cuid": broadcast["id"],
        "app": tenant,
        "transport": broadcast["channel"],
        "message": {**message, "meta": meta},
        "addresses": addresses,
        "maxAttempts": options.get("maxAttempts"),
        "triggerType": broadcast["trigger"],
        "webhook": options.get("webhook"),
        "options": {**times, **({} if interval is None else {"attemptIntervalMinutes": f"{interval:g}"})},
        "xref": broadcast["xref"],
        "status": _SESSION_STATUS.get(broadcast["state"], broadcast["state"].upper()),
        "startedAt": broadcast["started_at"],
        "endedAt": broadcast["ended_at"],
        "totalAddresses": broadcast["total"],
        "stats": status_counts(broadcast["counts"]),
        "createdAt": broadcast["accepted_at"],
        "updatedAt": broadcast["ended_at"] or broadcast["started_at"] or broadcast["accepted_at"],
        "Transport": transport(broadcast["channel"]),
    }


def recipient(found: Mapping[str, Any], broadcast: Mapping[str, Any], tenant: str) -> Row:
    """A recipient as a broadcast."""
    status = recipient_status(found)
    reason = {"state": found["state"], "category": found["category"], "error": found["detail"]}
    return {
        "cuid": found["id"],
        "app": tenant,
        "session": broadcast["id"],
        "transport": broadcast["channel"],
        "address": found["address"],
        "status": status,
        "isComplete": status in ("SUCCESS", "FAIL"),
        "xref": broadcast["xref"],
        "maxAttempts": broadcast["options"].get("maxAttempts"),
        "attempts": found["attempts"],
        "lastAttempt": found["changed_at"] if found["attempts"] else None,
        "disposition": reason if status == "FAIL" else {"receipt": found["detail"]} if status == "SUCCESS" else None,
        "createdAt": broadcast["accepted_at"],
        "updatedAt": found["changed_at"],
    }


def transport(channel: str) -> Row:
    """A channel as a transport: its name is its id."""
    return {"cuid": channel, "name": channel}
