"""List, show and acknowledge alerts."""

from __future__ import annotations

from collections import Counter

from ...inputs.pagination import Page, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso
from ...store.port import Row, Step, Store
from .evaluator import MAX_OPEN_ALERTS
from .measurements import AlertMeasurements
from .rules import AlertRule

_LAST = "\x7f"  # sorts after every id
_MAX_NAME_LENGTH = 120


class AlertService:
    """Alert operations of the API, CLI and dashboard."""

    def __init__(self, store: Store, clock: Clock, figures: AlertMeasurements) -> None:
        self._store = store
        self._clock = clock
        self.figures = figures

    async def page(
        self, *, tenant: str = "default", past: bool = False, limit: int = 50, after: str | None = None
    ) -> Page:
        """Open alerts, newest first; with `past` also resolved ones."""
        rows = await self._store.read(
            "alert_page", tenant=tenant, past=past, before=after or _LAST, limit=page_size(limit)
        )
        return Page([self._described(row) for row in rows], rows[-1]["id"] if len(rows) == limit else None)

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One alert; raises NotFound."""
        rows = await self._store.read("alert_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"there is no alert {id_}", field="id", remedy="see: tidings alerts list")
        return self._described(rows[0])

    async def acknowledge(self, id_: str, by: str, *, tenant: str = "default") -> Row:
        """Acknowledge an alert under a name; raises Conflict if someone already has."""
        by = by.strip()
        if not by or len(by) > _MAX_NAME_LENGTH or not by.isprintable():
            raise Invalid("the name is missing or invalid", field="by", remedy="give the name of the person")
        taken = {"id": id_, "tenant": tenant, "by_whom": by, "at": self._clock.now()}
        if not (await self._store.write([Step("alert_acknowledge", taken)]))[0]:
            found = await self.show(id_, tenant=tenant)
            holder = f" by {found['acknowledged_by']}" if found["state"] == "acknowledged" else ""
            raise Conflict(f"the alert is {found['state']}{holder}", remedy="see: tidings alerts list")
        return await self.show(id_, tenant=tenant)

    async def open(self) -> dict[str, int]:
        """Raised alerts of all tenants, counted by severity."""
        rows = await self._store.read("alert_open", limit=MAX_OPEN_ALERTS)
        return dict(Counter(row["severity"] for row in rows if row["state"] == "raised"))

    def _described(self, row: Row) -> Row:
        return serialize_alert(row, self.figures.rules.get(row["rule"]))


def serialize_alert(row: Row, rule: AlertRule | None) -> Row:
    """An alert as API fields; an unknown rule has no title, threshold or runbook."""
    is_taken = row["state"] == "raised" and row["acknowledged_at"] is not None
    return {
        "id": row["id"],
        "state": "acknowledged" if is_taken else row["state"],
        "rule": row["rule"],
        "title": rule.title if rule is not None else row["rule"],
        "subject": row["subject"] or None,
        **{name: row[name] for name in ("severity", "problem", "value")},
        "threshold": None if rule is None else rule.over,
        "runbook": None if rule is None else rule.runbook,
        "acknowledged_by": row["acknowledged_by"],
        "notify_error": row["notify_error"],
        **{name: iso(row[name]) for name in ("first_at", "raised_at", "last_at", "acknowledged_at", "resolved_at")},
    }
