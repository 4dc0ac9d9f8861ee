"""Evaluate the alert rules, raise and resolve alerts, and notify recipients.

A duty row lets one process evaluate at a time. An alert, its event and its messages are one conditional
transaction, so each alert is raised and resolved exactly once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError, StoreFull
from ...model.message import Draft
from ...model.time import HOUR, SECOND, iso, micros
from ...observability.events import AlertRaised, AlertResolved, Emit, discard_event
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..message_validation import MESSAGE_COLUMNS
from ..messages import MessageService
from .alert_changes import Measurement, SeenAlert, decide_changes
from .measurements import AlertMeasurements
from .rules import WINDOW, AlertRule

EVALUATION_INTERVAL = timedelta(seconds=15)
MAX_OPEN_ALERTS = 1000
_DUTY = "alerts"
_PRUNED = 500

MeasurementSource = Callable[[], Awaitable[Mapping[str, Sequence[Measurement]]]]


@dataclass(frozen=True, slots=True)
class AlertRecipients:
    """Who is notified, in addition to event subscribers."""

    channel: str | None = None
    to: tuple[str, ...] = ()


class AlertEvaluator:
    """An actor that evaluates the rules in each step. It also runs in processes that send no messages."""

    name = "alerts"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        messages: MessageService,
        figures: AlertMeasurements,
        *,
        recipients: AlertRecipients = AlertRecipients(),
        rules: Iterable[AlertRule] | None = None,
        sources: Sequence[MeasurementSource] = (),  # measurements of other packages
        keep: timedelta = timedelta(days=30),
        emit: Emit = discard_event,
    ) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages
        self._figures = figures
        self._recipients = recipients
        self._rules = {rule.name: rule for rule in rules or figures.rules.values()}
        self._sources = sources
        self._keep = micros(keep)
        self._emit = emit
        self._me = int(clock.chance() * (1 << 52))
        self._full_at: float | None = None  # when the database last refused a write as full
        self._pruned_at = 0

    async def step(self) -> float:
        """Evaluate if due and no other process does; returns the seconds until the next step."""
        asked = self._clock.monotonic()
        try:
            mine = await self._take_duty()
        except StoreFull:
            self._full_at = self._clock.monotonic()
            raise
        if mine:
            await self._evaluate(self._clock.monotonic() - asked)
        return EVALUATION_INTERVAL.total_seconds()

    async def _take_duty(self) -> bool:
        turn = {"name": _DUTY, "every": micros(EVALUATION_INTERVAL) - SECOND, "node": self._me}
        taken = await self._store.write([Step("maintenance_join", {"name": _DUTY}), Step("maintenance_take", turn)])
        return bool(taken[1])

    async def _evaluate(self, seconds: float) -> None:
        seen = await self._figures.read()
        for source in self._sources:
            seen |= {name: list(readings) for name, readings in (await source()).items()}
        seen["database_seconds"] = [Measurement(seconds, f"a small write took {seconds:.1f} s")]
        seen["database_full"] += self._refused()
        now: int = (await self._store.read("now"))[0]["now"]
        rows = await self._store.read("alert_open", limit=MAX_OPEN_ALERTS)
        verdict = decide_changes(self._rules.values(), seen, rows, now)
        for new in verdict.new:
            await self._add(new, now)
        for again in verdict.again:
            await self._see(again, now)
        for row in verdict.over:
            change = Step("alert_resolve", {"id": row["id"], "at": now}, needed=True)
            await self._notify(row, change, now, over=True)
        if verdict.dropped:
            await self._store.write([Step("alert_drop", {"id": row["id"]}) for row in verdict.dropped])
        await self._prune(now)

    def _refused(self) -> list[Measurement]:
        """A database that refused a write as full stays critical for one window."""
        if self._full_at is None or self._clock.monotonic() - self._full_at > WINDOW.total_seconds():
            return []
        return [Measurement(1, "it recently refused a write because it is full")]

    async def _add(self, new: SeenAlert, now: int) -> None:
        rule, reading = new.rule, new.reading
        row: Row = {
            "id": self._clock.new_id(), "tenant": reading.tenant, "rule": rule.name,
            "subject": reading.subject, "severity": str(rule.severity), "value": reading.value,
            "problem": reading.problem,
        }  # fmt: skip
        state = {"state": "raised" if new.is_raised else "pending", "raised_at": now if new.is_raised else None}
        added = {**row, **state, "at": now}
        if new.is_raised:
            await self._notify(row | {"first_at": now}, Step("alert_add", added, needed=True), now)
        else:
            await self._store.write([Step("alert_add", {**added, "notify_error": None})])

    async def _see(self, again: SeenAlert, now: int) -> None:
        seen = {"id": again.row["id"], "at": now, "value": again.reading.value, "problem": again.reading.problem}
        if again.is_raised:
            row = again.row | {"value": again.reading.value, "problem": again.reading.problem}
            await self._notify(row, Step("alert_raise", seen, needed=True), now)
        else:
            await self._store.write([Step("alert_see", seen)])

    async def _notify(self, row: Row, change: Step, now: int, *, over: bool = False) -> None:
        """Write the change, its event and its messages in one transaction."""
        rule = self._rules.get(row["rule"])
        tasks, rows, not_told = await self._prepare(alert_message(row, rule, resolved=over), now)
        event = {
            "at": now, "tenant": row["tenant"], "type": "alert.resolved" if over else "alert.raised",
            "subject": row["id"], "target": None,
            "body": orjson.dumps(event_body(row, rule, now, resolved=over)).decode(),
        }  # fmt: skip
        change = change._replace(params={"notify_error": not_told, **change.params})
        made = [TableRows("messages", MESSAGE_COLUMNS, rows)] if rows else []
        try:
            await self._store.enqueue(tasks, *made, also=[change, Step("outbox_add", event)])
        except WriteConflict:
            return  # another process was first
        kind = AlertResolved if over else AlertRaised
        self._emit(kind(row["rule"], row["subject"], row["severity"], row["problem"]))
        await self._store.hint()

    async def _prepare(self, text: str, now: int) -> tuple[list[Any], list[tuple[Any, ...]], str | None]:
        """Prepare the messages; recipients that cannot be reached are recorded and do not stop the others."""
        tasks, rows, problems = [], [], []
        for to in self._recipients.to if self._recipients.channel is not None else ():
            draft = Draft(str(self._recipients.channel), to, text, ordering_key=f"alerts:{to}", priority=0)
            try:
                task, row = await self._messages.prepare(draft, now)
            except CallerError as error:
                problems.append(f"{to}: {error.problem}")
                continue
            tasks.append(task)
            rows.append(row)
        return tasks, rows, "; ".join(problems)[:500] or None

    async def _prune(self, now: int) -> None:
        """Delete old resolved alerts every hour, one page at a time."""
        if abs(now - self._pruned_at) < HOUR:
            return
        old = {"before": now - self._keep, "limit": _PRUNED}
        if len((await self._store.write([Step("alert_prune", old)]))[0]) < _PRUNED:
            self._pruned_at = now


def alert_message(alert: Row, rule: AlertRule | None, *, resolved: bool = False) -> str:
    """The message of an alert: severity, title, problem, runbook and how to acknowledge it."""
    title, problem = rule.title if rule is not None else str(alert["rule"]), str(alert["problem"])
    if resolved:
        return f"Tidings, resolved: {title}. The problem was: {problem}."
    lines = [f"Tidings, {alert['severity']}: {title}.", f"{problem[:1].upper()}{problem[1:]}."]
    if rule is not None:
        lines.append(f"Runbook: tidings docs {rule.runbook}")
    lines.append(f"Acknowledge: tidings alerts ack {alert['id']} --by NAME")
    return "\n".join(lines)


def event_body(alert: Row, rule: AlertRule | None, at: int, *, resolved: bool = False) -> Mapping[str, Any]:
    """The `data` of an alert event."""
    return {
        "id": alert["id"],
        "rule": alert["rule"],
        "subject": alert["subject"] or None,
        **{name: alert[name] for name in ("severity", "problem", "value")},
        "threshold": None if rule is None else rule.over,
        "since": iso(alert["first_at"]),
        "resolved_at": iso(at) if resolved else None,
    }
