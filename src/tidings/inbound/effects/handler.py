"""The task handler of calendar commands: each is executed once, across crashes.

    crash or fault                          state at the next run           action
    after the plan, before the claim        planned                         proceed
    after the claim, before the call        claimed, the day as before      send
    after the call, before its result       claimed, the day as expected    confirm without sending
    success reported, nothing changed       the day as before               conflict: a person decides
    answer lost, someone edited the day     neither                         conflict

A result and its follow-up share one transaction, fenced by the claim; a run that finds a result does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import orjson

from ...kernel.clock import Clock
from ...kernel.handler import SelfWritingHandler
from ...kernel.lanes import Lane
from ...kernel.retry import RetryPolicy
from ...model.errors import Conflict, StoreFull, StoreUnavailable
from ...model.outcome import Defer, Done, Outcome, Retry, Unknown
from ...model.task import Category, OnUnknown, Task, TaskId
from ...model.time import SECOND, iso
from ...store.port import Step, Store, WriteConflict
from ...store.request_batches import BatchedLookup
from ..calendar.day_grid import bounds, command_problem, fulfils, side_effects, touched_slots
from ..calendar.port import CalendarOutcomeUnknown, CalendarUnavailable, ShiftCalendar
from .ledger import QUEUE, TRIES, Effect, EffectState, effect_of, followup
from .verification import ReadBack, compare_read_back, superseded_state, verified_state

_SENT = frozenset({EffectState.CLAIMED, EffectState.UNKNOWN})  # possibly sent: read the calendar first


def lane(policy: RetryPolicy, *, calls_within: timedelta) -> Lane:
    """Return the lane of commands: unknown outcomes are looked up; an attempt makes at most four calls."""
    return Lane(QUEUE, policy=policy, on_unknown=OnUnknown.ASK, deadline=4 * calls_within + timedelta(seconds=5))


class EffectHandler(SelfWritingHandler):
    """Runs commands on calendars, which it finds by name."""

    def __init__(self, store: Store, clock: Clock, calendars: Mapping[str, ShiftCalendar]) -> None:
        self._store = store
        self._clock = clock
        self._calendars = calendars
        self._newer = BatchedLookup(self._read_newer)

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Effect]:
        rows = await self._store.load("effect_load", [task.id for task in tasks])
        return {row[0]: effect_of(row) for row in rows}

    async def run(self, task: Task, content: Any) -> Outcome:
        effect: Effect = content
        try:
            return await self._attempt(task, effect)
        except WriteConflict:
            return Defer(self._clock.now(), "another process runs this command")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)

    async def _attempt(self, task: Task, effect: Effect) -> Outcome:
        if effect.told:
            return Done(effect.state.value)
        calendar = self._calendars.get(effect.calendar)
        problem = (
            f"unknown calendar {effect.calendar!r}"
            if calendar is None
            else command_problem(effect.command, grid=calendar.grid)
        )
        if calendar is None or problem is not None:
            return await self._end(task, effect, EffectState.REFUSED, problem or "")
        overtaking = superseded_state(bounds(effect.command), await self._newer.find(effect))
        if overtaking is not None:
            return await self._end(task, effect, overtaking, "later commands on these half hours are done")
        try:
            return await self._execute(task, effect, calendar)
        except CalendarUnavailable as error:
            return await self._wait(task, effect, error)
        except Conflict as error:
            return await self._end(task, effect, EffectState.REFUSED, error.problem)

    async def _read_newer(self, effects: Sequence[Effect]) -> dict[Effect, list[tuple[int, int]]]:
        asked = [
            {"task": each.task, "calendar": each.calendar, "day": each.command.date,
             "squad": each.command.squad, "first": first, "last": last}
            for each in effects
            for first, last in [bounds(each.command)]
        ]  # fmt: skip
        found: dict[int, list[tuple[int, int]]] = {each.task: [] for each in effects}
        for row in await self._store.read("effect_newer", asked=orjson.dumps(asked).decode()):
            found[row["task"]].append((row["first_slot"], row["last_slot"]))
        return {each: found[each.task] for each in effects}

    async def _execute(self, task: Task, effect: Effect, calendar: ShiftCalendar) -> Outcome:
        """Read the day; confirm a command that is done, otherwise claim and send it."""
        command = effect.command
        day = await calendar.day(command.date)
        now = touched_slots(day, command)
        if effect.pre is not None and effect.expected is not None and effect.state in _SENT:
            match compare_read_back(now, pre=effect.pre, expected=effect.expected):
                case ReadBack.DONE:
                    return await self._end(task, effect, EffectState.CONFIRMED, f"read: {now}; not sent again")
                case ReadBack.OTHER:
                    why = f"read: {now}; it was {effect.pre} and should be {effect.expected}"
                    return await self._end(task, effect, EffectState.CONFLICT, why)
            if effect.state is EffectState.UNKNOWN:
                effect = await self._move(task, effect, EffectState.NOT_APPLIED, f"read: {now}, as before")
            expected = effect.expected or ""
        else:
            preview = await calendar.preview(command)
            expected = touched_slots(preview, command)
            if others := side_effects(day, preview, command):
                if side_effects(day, await calendar.day(command.date), command):
                    raise CalendarUnavailable("the day was changed while the command was previewed")
                why = f"the calendar would also change hours that nobody asked for, of {', '.join(others)}"
                return await self._end(task, effect, EffectState.REFUSED, why)
            if not fulfils(command.action, expected):
                why = f"the calendar would not do it: its preview of {command.action} is {expected}"
                return await self._end(task, effect, EffectState.REFUSED, why)
            if now == expected:
                why = f"read: {now}; already done, nothing was sent"
                return await self._end(task, effect, EffectState.CONFIRMED, why)
        effect = await self._claim(task, effect, pre=now, expected=expected)
        return await self._send(task, effect, calendar, pre=now, expected=expected)

    async def _send(self, task: Task, effect: Effect, calendar: ShiftCalendar, *, pre: str, expected: str) -> Outcome:
        """Send the command and verify it by reading the day back."""
        try:
            applied = await calendar.apply(effect.command, effect.key)
        except CalendarOutcomeUnknown as error:
            return await self._doubt(task, effect, error.problem)
        except CalendarUnavailable as error:
            effect = await self._move(task, effect, EffectState.PLANNED, f"not sent: {error.problem}")
            return await self._wait(task, effect, error)
        word = f"{'accepted' if applied.accepted else 'refused'} ({applied.evidence})"
        try:
            now = touched_slots(await calendar.day(effect.command.date), effect.command)
        except CalendarUnavailable as error:
            return await self._doubt(task, effect, f"{word}, and not read back: {error.problem}")
        state = verified_state(compare_read_back(now, pre=pre, expected=expected), accepted=applied.accepted)
        return await self._end(task, effect, state, f"{word}; read back: {now}")

    # -- the ledger's moves

    async def _claim(self, task: Task, effect: Effect, *, pre: str, expected: str) -> Effect:
        """Commit the current and the expected half hours before the call (write-ahead)."""
        line = self._line(EffectState.CLAIMED, f"it is {pre} and should become {expected}")
        params = {**_fence(task, effect), "pre": pre, "expected": expected, "line": line}
        await self._store.enqueue([], also=[Step("effect_claim", params, needed=True)], together=True)
        return effect._replace(state=EffectState.CLAIMED, pre=pre, expected=expected)

    async def _doubt(self, task: Task, effect: Effect, why: str) -> Outcome:
        """Record an unknown outcome: read again later; on the last attempt, end as unknown."""
        if _is_last(task):
            return await self._end(task, effect, EffectState.UNKNOWN, why)
        await self._move(task, effect, EffectState.UNKNOWN, why)
        return Unknown(why)

    async def _wait(self, task: Task, effect: Effect, error: CalendarUnavailable) -> Outcome:
        """Retry while the calendar is unavailable; on the last attempt, end as refused or unknown."""
        if _is_last(task):
            over = EffectState.UNKNOWN if effect.state in _SENT else EffectState.REFUSED
            return await self._end(task, effect, over, f"given up after {task.attempts} tries: {error.problem}")
        category = Category.TEMPORARY if error.after is None else Category.THROTTLING
        return Retry(category, error.problem, after=error.after)

    async def _move(self, task: Task, effect: Effect, to: EffectState, why: str) -> Effect:
        await self._store.write([self._step(task, effect, to, why, over=False)])
        return effect._replace(state=to)

    async def _end(self, task: Task, effect: Effect, to: EffectState, why: str) -> Outcome:
        """Write the result and its follow-up in one transaction."""
        tasks, rows = followup(effect.plan, effect.tenant, effect.conversation, now=self._clock.now())
        step = self._step(task, effect, to, why, over=True)
        await self._store.enqueue(tasks, rows, also=[step], together=True)
        if tasks:
            await self._store.hint()
        return Done(f"{to}: {why}")

    def _step(self, task: Task, effect: Effect, to: EffectState, why: str, *, over: bool) -> Step:
        params = {**_fence(task, effect), "state": to.value, "line": self._line(to, why), "over": over}
        return Step("effect_move", params, needed=True)

    def _line(self, state: EffectState, why: str) -> str:
        return f"{iso(self._clock.now())} {state}: {why}\n"


def _fence(task: Task, effect: Effect) -> dict[str, Any]:
    return {"task": task.id, "claim_no": task.claim_no, "origin": effect.state.value}


def _is_last(task: Task) -> bool:
    return task.attempts >= (task.max_attempts or TRIES)
