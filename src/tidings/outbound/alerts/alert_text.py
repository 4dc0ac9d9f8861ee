"""The text message and the event of an alert. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.time import iso
from ...store.port import Row
from .rules import AlertRule

RAISED = "alert.raised"
RESOLVED = "alert.resolved"


def alert_message(alert: Row, rule: AlertRule | None, *, resolved: bool = False) -> str:
    """The message of an alert: severity, title, problem, runbook and how to acknowledge it."""
    title = rule.title if rule is not None else str(alert["rule"])
    if resolved:
        return f"Tidings, resolved: {title}. The problem was: {alert['problem']}."
    lines = [f"Tidings, {alert['severity']}: {title}.", f"{_capital(alert['problem'])}."]
    if rule is not None:
        lines.append(f"Runbook: docs/{rule.runbook}")
    lines.append(f"Acknowledge: tidings alerts ack {alert['id']} --by NAME")
    return "\n".join(lines)


def event_body(alert: Row, rule: AlertRule | None, at: int, *, resolved: bool = False) -> Mapping[str, Any]:
    """The `data` of an alert event."""
    return {
        "id": alert["id"],
        "rule": alert["rule"],
        "subject": alert["subject"] or None,
        "severity": alert["severity"],
        "problem": alert["problem"],
        "value": alert["value"],
        "threshold": None if rule is None else rule.over,
        "since": iso(alert["first_at"]),
        "resolved_at": iso(at) if resolved else None,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
