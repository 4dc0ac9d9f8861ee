"""Accept messages, find them, and cancel, retry, reschedule or discard them.

Accept validates first and then writes a message and its task in one transaction. The public state `sent` is
the kernel's `done`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..inputs.pagination import Page, decode_position, page_size
from ..kernel import task_actions
from ..kernel.clock import Clock
from ..kernel.task_actions import TaskActionResult
from ..model.errors import Conflict, Invalid, NotFound, RateLimited, TidingsError
from ..model.message import Draft
from ..model.task import NewTask
from ..model.time import SECOND, iso, micros
from ..store.port import EnqueueResult, IdempotencyRecord, Row, Step, Store, TableRows, WriteConflict
from .channels.base import Channel
from .idempotency import find_replay, optional_key, replayed_answer
from .message_serializer import attempt_times, kernel_state, public_state, serialize_history_entry, serialize_message
from .message_validation import MAX_SCHEDULE_AHEAD, MESSAGE_COLUMNS, MessageLimits, MessageValidator
from .receipts.delivery_status import overall_status, serialize_receipts
from .templates.service import TemplateService, TemplatesInUse

CHUNK_SIZE = 4 << 20  # maximum characters of content in one bulk transaction
CHUNKS_AHEAD = 1  # chunks validated while one is being written
SLICE = 50  # messages validated before yielding to the event loop
WINDOW = 20_000  # maximum tasks scanned for one page


class AcceptedMessage(NamedTuple):
    """An accepted message; `replayed` if the idempotency key had been answered before."""

    id: str
    at: int
    replayed: bool = False


class BulkLineResult(NamedTuple):
    """The result of one line of a bulk call: an id or an error."""

    number: int
    id: str | None
    error: TidingsError | None = None


class _BulkChunk(NamedTuple):
    """A chunk of a bulk call, validated and ready to be written."""

    tasks: list[NewTask]
    rows: list[tuple[Any, ...]]
    lines: list[BulkLineResult]
    now: int
    once: IdempotencyRecord | None = None


class MessageService:
    """Message operations of the API, CLI and dashboard."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[str, Channel],
        rules: MessageLimits = MessageLimits(),
        templates: TemplateService | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._judge = MessageValidator(clock, channels, rules)
        self.rules = rules
        self._grace = micros(rules.grace)
        self.templates = templates or TemplateService(store, clock, max_body=rules.max_body, channels=channels)

    def knows(self, channel: str) -> bool:
        """Whether the channel is configured in this process."""
        return self._judge.knows(channel)

    # -- accepting

    async def accept(self, draft: Draft, *, key: str | None = None) -> AcceptedMessage:
        """Store one message. Repeating the idempotency key with the same draft returns the first answer."""
        now = self._clock.now()
        id_ = self._clock.new_id()
        answer = [id_, now if draft.at is None else draft.at]
        once = self._once("messages", key, _said(draft), answer, now, draft.tenant)
        try:
            if draft.template is not None:
                draft = await self.templates.fill(draft)
            task, row = self._judge.prepare(draft, now, id_)
        except TidingsError:
            if once is None or not (found := await self._store.read("idempotency_key_find", scope=once.scope, key=key)):
                raise
            return _replay(found[0], once)  # a draft that was valid then may be invalid now
        accepted = AcceptedMessage(id_, task.due_at)
        done = await self._enqueue([task], [row], once, now)
        if done.earlier is not None and once is not None:
            return _replay(done.earlier, once)
        await self._hint([task], now)
        return accepted

    async def accept_many(
        self,
        drafts: AsyncIterator[tuple[int, Draft | TidingsError]],
        *,
        key: str | None = None,
        tenant: str = "default",
    ) -> AsyncIterator[list[BulkLineResult]]:
        """Accept a stream, one transaction per chunk. An invalid line is reported and skipped.

        With an idempotency key (scoped to the tenant) an interrupted call can be repeated: chunks that were
        accepted return their first answer.
        """
        ahead: asyncio.Queue[_BulkChunk | None] = asyncio.Queue(CHUNKS_AHEAD)

        async def judge() -> None:
            try:
                async for chunk in self._judged(drafts, key, tenant):
                    await ahead.put(chunk)
            finally:  # if the stream breaks, the chunks validated so far are still accepted and reported
                await ahead.put(None)

        judging = asyncio.create_task(judge())
        writing: asyncio.Task[list[BulkLineResult]] | None = None
        try:
            while (judged := await ahead.get()) is not None:
                written = None if writing is None else await writing
                writing = asyncio.create_task(self._write(judged))
                if written is not None:
                    yield written
            if writing is not None:
                yield await writing
            await judging
        finally:
            judging.cancel()
            await asyncio.wait([judging])
            if writing is not None and not writing.done():  # the caller stopped: finish the write in progress
                await asyncio.wait([writing])

    async def _judged(
        self, drafts: AsyncIterator[tuple[int, Draft | TidingsError]], key: str | None, tenant: str
    ) -> AsyncIterator[_BulkChunk]:
        """Validate a stream chunk by chunk without writing; yields often to a concurrent write."""
        chunk = _BulkChunk([], [], [], self._clock.now())
        templates: TemplatesInUse = {}
        said: list[object] = []
        size = 0
        async for number, draft in drafts:
            try:
                if isinstance(draft, TidingsError):
                    raise draft
                ready = draft if draft.template is None else await self.templates.fill(draft, templates)
                task, row = self._judge.prepare(ready, chunk.now)
            except TidingsError as error:
                chunk.lines.append(BulkLineResult(number, None, error))
            else:
                chunk.tasks.append(task)
                chunk.rows.append(row)
                chunk.lines.append(BulkLineResult(number, row[2]))
                size += len(row[6])
            if key is not None:
                said.append(_said(draft))
            if not len(chunk.lines) % SLICE:
                await asyncio.sleep(0)
            if len(chunk.lines) >= self._store.bulk or size >= CHUNK_SIZE:
                yield self._named(chunk, key, said, tenant)
                chunk, said, size = _BulkChunk([], [], [], self._clock.now()), [], 0
        if chunk.lines:
            yield self._named(chunk, key, said, tenant)

    def _named(self, chunk: _BulkChunk, key: str | None, said: list[object], tenant: str) -> _BulkChunk:
        """The chunk with its idempotency key, which identifies it when the call is repeated."""
        answer = [line.id for line in chunk.lines]
        place = None if key is None else f"{key}#{chunk.lines[0].number}"
        return chunk._replace(once=self._once("messages.bulk", place, said, answer, chunk.now, tenant))

    async def _write(self, judged: _BulkChunk) -> list[BulkLineResult]:
        """Write a chunk; the lines of one that was accepted before get their first answer, even if invalid now."""
        if not judged.tasks:
            earlier = await find_replay(self._store, judged.once)
            return judged.lines if earlier is None else _replayed_lines(judged.lines, earlier.answer)
        try:
            done = await self._enqueue(judged.tasks, judged.rows, judged.once, judged.now)
        except RateLimited as error:
            return [line if line.error else BulkLineResult(line.number, None, error) for line in judged.lines]
        if done.earlier is not None and judged.once is not None:
            return _replayed_lines(judged.lines, replayed_answer(done.earlier, judged.once))
        await self._hint(judged.tasks, judged.now)
        return judged.lines

    async def _enqueue(
        self, tasks: Sequence[NewTask], rows: Sequence[tuple[Any, ...]], once: IdempotencyRecord | None, now: int
    ) -> EnqueueResult:
        """Write the messages of one tenant and count them against its quota."""
        tenant, tenants = tasks[0].tenant, self.rules.tenants
        quota = tenants.take(tenant, len(tasks), now)
        try:
            return await self._store.enqueue(tasks, TableRows("messages", MESSAGE_COLUMNS, rows), once=once, also=quota)
        except WriteConflict:
            raise tenants.used_up(tenant, now) from None

    async def check_quota(self, tenant: str, now: int) -> list[Step]:
        """Return the step that counts one message; raises RateLimited if today's quota is used up."""
        tenants = self.rules.tenants
        await tenants.check_left(self._store, tenant, 1, now)
        return [step._replace(name="quota_add", needed=False) for step in tenants.take(tenant, 1, now)]

    async def prepare(self, draft: Draft, now: int) -> tuple[NewTask, tuple[Any, ...]]:
        """Return a validated task and row, to be written in the caller's transaction."""
        if draft.template is not None:
            draft = await self.templates.fill(draft)
        return self._judge.prepare(draft, now)

    def _once(
        self, scope: str, key: str | None, body: object, answer: object, now: int, tenant: str
    ) -> IdempotencyRecord | None:
        until = now + micros(self.rules.keep_keys)
        return optional_key(scope, key, body, answer, tenant=tenant, until=until)

    async def _hint(self, tasks: Iterable[NewTask], now: int) -> None:
        """Notify workers if a task is due within a second; polling finds later ones in time."""
        if any(task.due_at <= now + SECOND for task in tasks):
            await self._store.hint()

    # -- finding

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One message with its state, times, receipts and history."""
        row = await self.find(id_, tenant=tenant)
        history = await self._store.read("history_of", task=row["task"])
        told = await self._store.read("receipt_of", task=row["task"])
        return {
            **serialize_message(row),
            **attempt_times(row, history),
            "delivery": overall_status(told),
            "receipts": serialize_receipts(told),
            "history": [serialize_history_entry(entry) for entry in history],
        }

    async def page(
        self,
        *,
        tenant: str = "default",
        state: str | None = None,
        channel: str | None = None,
        to: str | None = None,
        unknown: bool | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """Messages, newest first. Each page scans a bounded number of rows, so it may be short."""
        page_size(limit)
        params: dict[str, Any] = {"before": decode_position(after), "tenant": tenant, "window": WINDOW}
        kept = kernel_state(state)
        if to is not None:
            (rows_of, floor_of), params["recipient"] = ("message_to", "to_floor"), to
        elif kept in ("failed", "expired"):
            rows_of, floor_of = "message_ended", "ended_floor"
        else:
            rows_of, floor_of = "message_window", "window_floor"
        filters = {"channel": channel, "state": kept, "unknown": unknown, "limit": limit}
        rows = await self._store.read(rows_of, **params, **filters)
        items = [shown for row in rows if state in (None, (shown := serialize_message(row))["state"])]
        if len(rows) == limit:
            return Page(items, str(rows[-1]["task"]))
        floor = (await self._store.read(floor_of, **params, state=kept))[0]
        more = floor["seen"] >= WINDOW
        return Page(items, str(floor["floor"]) if more else None)

    async def find(self, id_: str, *, tenant: str = "default") -> Row:
        """One message as stored; raises NotFound."""
        rows = await self._store.read("message_find", id=id_, tenant=tenant) or await self._store.read(
            "message_frozen", id=id_, tenant=tenant
        )
        if not rows:
            raise NotFound(f"there is no message {id_}", remedy="look it up with: tidings messages list")
        return rows[0]

    async def _taken(self, id_: str, tenant: str) -> Row:
        """One message; raises Conflict while it is an unfed recipient of a broadcast."""
        row = await self.find(id_, tenant=tenant)
        if row.get("broadcast_state") is not None:
            raise Conflict(
                f"the message still waits in its broadcast {row['broadcast']}",
                remedy="pause or cancel the broadcast, or suppress the recipient: tidings suppressions add",
            )
        return row

    # -- what a person may do

    async def cancel(self, id_: str, *, tenant: str = "default", reason: str = "cancelled by hand") -> Row:
        """Cancel a pending message; request cancellation of one that is being sent (`answer`: cancelling)."""
        row = await self._taken(id_, tenant)
        answer, state = await task_actions.cancel(self._store, row["task"], reason=reason)
        if answer is TaskActionResult.REFUSED:
            raise Conflict(_too_late("cancelled", public_state(state)), remedy=_SEE.format(id_))
        return {
            **await self.show(id_, tenant=tenant),
            "answer": "cancelling" if answer is TaskActionResult.ASKED else "cancelled",
        }

    async def retry(self, id_: str, *, tenant: str = "default", at: int | None = None) -> Row:
        """Retry a dead letter with a fresh set of attempts."""
        row = await self.find(id_, tenant=tenant)
        now = self._clock.now()
        due = now if at is None else at
        answer, state = await task_actions.retry(
            self._store, row["task"], due_at=due, expires_at=max(due, now) + self._grace, reason="retried by hand"
        )
        if answer is TaskActionResult.REFUSED:
            raise Conflict(
                f"only a failed message can be retried; this one is {public_state(state)}", remedy=_SEE.format(id_)
            )
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def reschedule(self, id_: str, at: int, *, tenant: str = "default") -> Row:
        """Change the time of a pending message."""
        row = await self._taken(id_, tenant)
        now = self._clock.now()
        if at > now + MAX_SCHEDULE_AHEAD:
            raise Invalid(f"{iso(at)} is more than ten years ahead", field="at", remedy="give an earlier time")
        expires = max(at, now) + max(0, (row["expires_at"] or 0) - max(row["scheduled_at"], row["accepted_at"]))
        answer, state = await task_actions.reschedule(self._store, row["task"], due_at=at, expires_at=expires)
        if answer is TaskActionResult.REFUSED:
            raise Conflict(
                f"only a pending message can be rescheduled; this one is {public_state(state)}", remedy=_SEE.format(id_)
            )
        if at <= now + SECOND:
            await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def discard(self, id_: str, *, tenant: str = "default") -> Row:
        """Discard a dead letter."""
        row = await self.find(id_, tenant=tenant)
        if row["state"] != "failed":
            raise Conflict(
                f"only a dead letter can be discarded; this one is {public_state(row['state'])}",
                remedy=_SEE.format(id_),
            )
        return await self.cancel(id_, tenant=tenant, reason="discarded by hand")


_SEE = "see: tidings messages show {}"


def _too_late(what: str, state: str) -> str:
    if state == "sent":
        return "the message has already been sent"
    return f"the message is {state} and cannot be {what}"


def _said(draft: Draft | TidingsError) -> object:
    """What identifies a repeat: the original request, because "in 10 min" is a different time each call."""
    return draft.said if isinstance(draft, Draft) and draft.said is not None else draft


def _replayed_lines(lines: Sequence[BulkLineResult], ids: Sequence[str | None]) -> list[BulkLineResult]:
    return [line if id_ is None else BulkLineResult(line.number, id_) for line, id_ in zip(lines, ids, strict=True)]


def _replay(earlier: Row, once: IdempotencyRecord) -> AcceptedMessage:
    id_, at = replayed_answer(earlier, once)
    return AcceptedMessage(id_, at, replayed=True)
