"""The guard: looks at the engine, and writes down, tells and takes back what is wrong with it.

One process at a time does it, by a duty's row. An alert, the event that tells of it and the messages to
people are one transaction, on condition that nobody else has raised it: it is told once, and so is its end.
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
from ...model.time import HOUR, SECOND, micros
from ...observability.events import AlertRaised, AlertResolved, Emit, discard_event
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..message_validation import MESSAGE_COLUMNS
from ..messages import MessageService
from . import alert_text
from .alert_changes import Measurement, NewAlert, OngoingAlert, decide_changes
from .measurements import AlertMeasurements
from .rules import WINDOW, AlertRule

EVALUATION_INTERVAL = timedelta(seconds=15)
MAX_OPEN_ALERTS = 1000
_DUTY = "alerts"
_PRUNED = 500

MeasurementSource = Callable[[], Awaitable[Mapping[str, Sequence[Measurement]]]]


@dataclass(frozen=True, slots=True)
class AlertRecipients:
    """Who is told, besides whoever listens to events."""

    channel: str | None = None
    to: tuple[str, ...] = ()


class AlertEvaluator:
    """An actor; one step looks once. It needs no right to work, only a database that answers."""

    name = "alerts"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        messages: MessageService,
        figures: AlertMeasurements,
        *,
        told: AlertRecipients = AlertRecipients(),
        rules: Iterable[AlertRule] | None = None,
        looks: Sequence[MeasurementSource] = (),  # figures of other parts
        keep: timedelta = timedelta(days=30),
        emit: Emit = discard_event,
    ) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages
        self._figures = figures
        self._told = told
        self._rules = {rule.name: rule for rule in rules or figures.rules.values()}
        self._looks = looks
        self._keep = micros(keep)
        self._emit = emit
        self._me = int(clock.chance() * (1 << 52))
        self._full_at: float | None = None  # when a write was last refused for want of room
        self._pruned_at = 0

    async def step(self) -> float:
        """Look, if it is due and nobody else does; gives the seconds until the next look."""
        asked = self._clock.monotonic()
        try:
            mine = await self._take_duty()
        except StoreFull:
            self._full_at = self._clock.monotonic()
            raise
        if mine:
            await self._look(self._clock.monotonic() - asked)
        return EVALUATION_INTERVAL.total_seconds()

    async def _take_duty(self) -> bool:
        turn = {"name": _DUTY, "every": micros(EVALUATION_INTERVAL) - SECOND, "node": self._me}
        taken = await self._store.write(
            [Step("maintenance_join", {"name": _DUTY}), Step("maintenance_take", turn)]
        )
        return bool(taken[1])

    async def _look(self, seconds: float) -> None:
        seen = await self._figures.read()
        for look in self._looks:
            seen |= {name: list(readings) for name, readings in (await look()).items()}
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
            await self._resolve(row, now)
        if verdict.dropped:
            await self._store.write([Step("alert_drop", {"id": row["id"]}) for row in verdict.dropped])
        await self._prune(now)

    def _refused(self) -> list[Measurement]:
        """A disk that was full a moment ago is not well yet."""
        if self._full_at is None or self._clock.monotonic() - self._full_at > WINDOW.total_seconds():
            return []
        return [Measurement(1, "it had no room for a write a moment ago")]

    async def _add(self, new: NewAlert, now: int) -> None:
        rule, reading = new.rule, new.reading
        row: Row = {
            "id": self._clock.new_id(), "tenant": reading.tenant, "rule": rule.name,
            "subject": reading.subject, "severity": str(rule.severity), "value": reading.value,
            "problem": reading.problem, "first_at": now,
        }  # fmt: skip
        state = {
            "state": "raised" if new.is_raised else "pending",
            "raised_at": now if new.is_raised else None,
        }
        added = {name: value for name, value in row.items() if name != "first_at"} | state | {"at": now}
        if new.is_raised:
            await self._tell(row, Step("alert_add", added, needed=True), now)
        else:
            await self._store.write([Step("alert_add", {**added, "notify_error": None})])

    async def _see(self, again: OngoingAlert, now: int) -> None:
        seen = {
            "id": again.row["id"],
            "at": now,
            "value": again.reading.value,
            "problem": again.reading.problem,
        }
        if again.is_raised:
            row = again.row | {"value": again.reading.value, "problem": again.reading.problem}
            await self._tell(row, Step("alert_raise", seen, needed=True), now)
        else:
            await self._store.write([Step("alert_see", seen)])

    async def _resolve(self, row: Row, now: int) -> None:
        await self._tell(
            row, Step("alert_resolve", {"id": row["id"], "at": now}, needed=True), now, over=True
        )

    async def _tell(self, row: Row, change: Step, now: int, *, over: bool = False) -> None:
        """The change, its event and its messages, all or none."""
        rule = self._rules.get(row["rule"])
        tasks, rows, not_told = await self._prepare(alert_text.alert_message(row, rule, resolved=over), now)
        event = {
            "at": now, "tenant": row["tenant"], "type": alert_text.RESOLVED if over else alert_text.RAISED,
            "subject": row["id"], "target": None,
            "body": orjson.dumps(alert_text.event_body(row, rule, now, resolved=over)).decode(),
        }  # fmt: skip
        change = change._replace(params={"notify_error": not_told, **change.params})
        made = [TableRows("messages", MESSAGE_COLUMNS, rows)] if rows else []
        try:
            await self._store.enqueue(tasks, *made, also=[change, Step("outbox_add", event)])
        except WriteConflict:
            return  # somebody else has told it
        kind = AlertResolved if over else AlertRaised
        self._emit(kind(row["rule"], row["subject"], row["severity"], row["problem"]))
        await self._store.hint()

    async def _prepare(self, text: str, now: int) -> tuple[list[Any], list[tuple[Any, ...]], str | None]:
        """The messages to people; who cannot be written to is noted, and keeps nobody else from knowing."""
        tasks, rows, problems = [], [], []
        for to in self._told.to if self._told.channel is not None else ():
            draft = Draft(str(self._told.channel), to, text, ordering_key=f"alerts:{to}", priority=0)
            try:
                task, row = await self._messages.prepare(draft, now)
            except CallerError as error:
                problems.append(f"{to}: {error.problem}")
                continue
            tasks.append(task)
            rows.append(row)
        return tasks, rows, "; ".join(problems)[:500] or None

    async def _prune(self, now: int) -> None:
        """Forget what was over long ago, now and then, a page at a time."""
        if abs(now - self._pruned_at) < HOUR:
            return
        old = {"before": now - self._keep, "limit": _PRUNED}
        if len((await self._store.write([Step("alert_prune", old)]))[0]) < _PRUNED:
            self._pruned_at = now
