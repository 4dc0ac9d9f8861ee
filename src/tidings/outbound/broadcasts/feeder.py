"""Feed broadcasts: turn recipients of the snapshot into tasks, a window at a time.

Runs on every working node. A check is claimed by updating the broadcast's row, every change names the state
it expects, and tasks are written in the transaction that moves the cursor. Concurrent feeders, or one that
dies anywhere, neither lose nor repeat a recipient. Open tasks are never counted in memory.
"""

from __future__ import annotations

from typing import Any

from ...kernel.clock import Clock
from ...model.broadcast import BroadcastState, BroadcastTally, TimezonePart, broadcast_tally, load_broadcast_options
from ...model.time import SECOND
from ...observability.events import BroadcastStateChanged, Emit, discard_event
from ...store.port import Row, Step, Store, WriteConflict
from ..message_validation import MESSAGE_KIND
from . import delivery_windows, open_tasks
from .delivery_windows import (
    EndBroadcast,
    FeedRecipients,
    FeedState,
    PauseAfterCanary,
    RetryFailedRecipients,
    StartBroadcast,
    WaitUntil,
    decide_feed,
)
from .progress import compact_counts, tally_step
from .recipient_snapshot import BroadcastCreator
from .serializer import broadcast_event

PAGE = 50  # broadcasts per step
LEASE = SECOND  # how long a claimed check belongs to one feeder
IDLE = 1.0  # seconds between two steps when nothing is due
_GOLDEN = 0.6180339887498949  # golden ratio: spreads neighboring recipients far apart


class BroadcastFeeder:
    """An actor; one step checks the broadcasts that are due."""

    name = "broadcast_feeder"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        broadcast_creator: BroadcastCreator,
        *,
        grace: int,
        emit: Emit = discard_event,
        bulk: int | None = None,
        window: int | None = None,
    ) -> None:
        """`bulk` limits the recipients enqueued in one transaction, `window` those in progress at once."""
        self._store = store
        self._clock = clock
        self._broadcast_creator = broadcast_creator
        self._grace = grace
        self._emit = emit
        self._bulk = min(store.bulk, bulk or store.bulk)
        self._window = window

    async def step(self) -> float:
        """Check every broadcast that is due; returns the seconds until the next one."""
        rows = await self._store.read("broadcast_due", limit=PAGE)
        if not rows:
            return IDLE
        now: int = rows[0]["now"]
        nexts: list[int] = [row["check_at"] for row in rows if row["check_at"] > now]
        for row in rows:
            if row["check_at"] <= now and (at := await self._look(row["group_id"], row["check_at"])) is not None:
                nexts.append(at)
        if not nexts:
            return IDLE if len(rows) < PAGE else 0.0
        return min(IDLE, max(0.0, (min(nexts) - self._clock.now()) / SECOND))

    async def _look(self, group_id: int, seen: int) -> int | None:
        """Claim the check and act on the broadcast's state; returns when to check again."""
        steps = [
            Step("broadcast_check", {"group_id": group_id, "seen": seen, "lease": LEASE}),
            Step("broadcast_row", {"group_id": group_id}, only_if=0),
            tally_step(group_id, only_if=0),
            Step("broadcast_parts", {"group_id": group_id}, only_if=0),
        ]
        taken, found, counted, parts = await self._store.write(steps)
        if not taken:
            return None  # another feeder has it
        now, leased = int(taken[0]["now"]), int(taken[0]["check_at"])
        row, tally = found[0], broadcast_tally(counted[0])
        await compact_counts(self._store, group_id, tally)
        try:
            match BroadcastState(row["state"]):
                case BroadcastState.LOADING:
                    await self._broadcast_creator.load_from_source(row)
                    return now
                case BroadcastState.READY | BroadcastState.RUNNING:
                    return await self._act(row, self._seen(row, tally, parts, now, seen), leased)
                case _:
                    return await self._settle_down(row, tally, now, leased)
        except WriteConflict:
            return leased  # it changed meanwhile

    async def _later(self, row: Row, leased: int, at: int | None) -> int | None:
        """Store when to check again, unless an earlier check was requested."""
        await self._store.write(
            [Step("broadcast_next", {"group_id": row["group_id"], "check_at": at, "leased": leased})]
        )
        return at

    def _seen(self, row: Row, tally: BroadcastTally, parts: list[Row], now: int, due_at: int) -> FeedState:
        known = [TimezonePart(**part) for part in parts]
        begins = [part.starts_at for part in known if part.starts_at is not None]
        starts_at = max(min(begins, default=row["scheduled_at"] or 0), row["frozen_at"] or 0)
        return FeedState(
            now, row["state"], load_broadcast_options(row["options"]), tally, row["taken"], known, starts_at,
            due_at, row["changed_at"], self._grace, self._bulk, row["paced_to"], row["gate"],
            row["retry_to"] is not None, self._window or delivery_windows.WINDOW,
        )  # fmt: skip

    # -- under way

    async def _act(self, row: Row, look: FeedState, leased: int) -> int | None:
        """Execute the feed decision; returns when to check again."""
        if row["state"] == BroadcastState.RUNNING and row["paused_at"] is not None:
            await open_tasks.resume_tasks(self._store, row)
            await self._store.write([Step("broadcast_requeued", {"group_id": row["group_id"]})])
            await self._store.hint()
        verdict = decide_feed(look)
        match verdict:
            case FeedRecipients() | WaitUntil():
                for rest in verdict.resting:
                    await open_tasks.delay_tasks(self._store, row, rest.part, rest.until)
                if isinstance(verdict, WaitUntil):
                    return await self._later(row, leased, verdict.check_at)
                await self._take(row, verdict)
                return verdict.check_at
            case RetryFailedRecipients():
                await self._revive(row, verdict)
            case StartBroadcast():
                step = Step("broadcast_start", {"group_id": row["group_id"]}, needed=True)
                await self._move(row, look.tally, BroadcastState.RUNNING, None, step)
            case PauseAfterCanary(reason=reason):
                params = {"group_id": row["group_id"], "reason": reason, "passes": True}
                step = Step("broadcast_pause", params, needed=True)
                await self._move(row, look.tally, BroadcastState.PAUSED, reason, step)
            case EndBroadcast():
                await self._end(row, look, verdict)
        return look.now

    async def _end(self, row: Row, look: FeedState, end: EndBroadcast) -> None:
        params = {
            "group_id": row["group_id"], "state": end.state.value, "reason": end.reason,
            "expected": row["state"],
            "taken": row["taken"], "retry_to": -1 if row["retry_to"] is None else row["retry_to"],
            "parks": end.parks, "check_at": look.now if look.tally.open else None,
        }  # fmt: skip
        step = Step("broadcast_end", params, needed=True)
        await self._move(row, look.tally, end.state, end.reason, step)

    async def _move(
        self, row: Row, tally: BroadcastTally, state: BroadcastState, reason: str | None, step: Step
    ) -> None:
        """Write a state change with its event."""
        await self._store.write([step, broadcast_event(row, tally, state, reason)])
        self._emit(BroadcastStateChanged(row["id"], row["tenant"], state.value, reason))

    async def _take(self, row: Row, take: FeedRecipients) -> None:
        """Make tasks for the next recipients and move the cursors, in one transaction."""
        group_id, options = row["group_id"], load_broadcast_options(row["options"])
        moved = {
            "group_id": group_id, "n": take.size, "expected": row["taken"], "paced_to": take.paced_to,
            "check_at": take.check_at,
        }  # fmt: skip
        common: dict[str, Any] = {
            "group_id": group_id, "kind": MESSAGE_KIND, "priority": options.priority,
            "expire_after": self._grace, "gap": take.gap, "max_attempts": options.max_attempts,
            "spread": options.spread,
            "stride": round(_GOLDEN * (options.spread + 1)),
        }  # fmt: skip
        steps, due_at = [Step("broadcast_taken", moved, needed=True)], take.due_at
        for part, n in take.portions:
            where = {"group_id": group_id, "part": part.part, "after": part.taken_to, "n": n}
            steps.append(Step("group_take", {**common, **where, "due_at": due_at}))
            steps.append(Step("broadcast_part_taken", where, needed=True))
            due_at += n * take.gap
        await self._store.write(steps)
        await self._store.hint()

    async def _revive(self, row: Row, revive: RetryFailedRecipients) -> None:
        """Retry the next failed recipients; the cursor moves past them, so none is retried twice."""
        group_id, after, held = row["group_id"], row["retry_to"], bool(row["retry_unknown"])
        found = (
            await self._store.read("group_failed", group_id=group_id, after=after, unknown=held, limit=revive.room)
        )[0]
        is_last = found["seen"] < revive.room
        move = {"group_id": group_id, "expected": after, "place": None if is_last else found["place"]}
        params = {
            "group_id": group_id, "after": after, "upto": found["place"] or after, "unknown": held,
            "due_at": revive.due_at, "gap": revive.gap, "expire_after": self._grace,
            "reason": "retried with its broadcast",
        }  # fmt: skip
        steps = [Step("broadcast_retried", {**move, "check_at": revive.due_at}, needed=True)]
        await self._store.write([*steps, *open_tasks.with_history(self._store, "group_revive", params)])
        await self._store.hint()

    # -- paused or ended

    async def _settle_down(self, row: Row, tally: BroadcastTally, now: int, leased: int) -> int | None:
        """Pause or end the open tasks of a broadcast that is paused, stopped or over, until none is left."""
        moved, state = 0, row["state"]
        if state == BroadcastState.PAUSED or (state == BroadcastState.FAILED and row["paused_at"] is not None):
            moved = await open_tasks.pause_tasks(self._store, row)
        elif state == BroadcastState.CANCELLED:
            reason = "its broadcast was cancelled"
            moved = await open_tasks.end_tasks(self._store, row, state="cancelled", reason=reason, asked=True)
        elif state == BroadcastState.EXPIRED:
            reason = "its broadcast expired"
            moved = await open_tasks.end_tasks(self._store, row, state="expired", reason=reason, asked=False)
        return await self._later(row, leased, now + SECOND if moved or tally.processing else None)
