"""Afterthoughts: what an edit or a delete still does to a message that was worked through.

| what came of the message | an edit | a delete |
| --- | --- | --- |
| nothing | is worked through like something newly said | changes nothing |
| it is kept | it is kept as it reads now | it is not worked through |
| an open request, nobody else had a word in it | stands in its place | drops it |
| an open request of several people | is one more answer | is said, and the request stays |
| commands for the calendar | is told, unless it asks for the same | is told |

Told are the group and an admin, with what was done and what was not. Nothing is undone by it: who wants that
says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import orjson

from ...kernel.clock import Clock
from ...model.errors import StoreFull, StoreUnavailable
from ...model.outcome import Defer, Done, Outcome
from ...model.time import SECOND, micros
from ...store.port import Row, Step, Store
from ..admission import find_impersonation
from ..domain import Speaker
from ..effects.ledger import EffectState, command_of
from ..escalation.reasons import Escalation
from ..message_handler import MessageChange
from ..roster import speaker_of
from . import reply_texts
from .correlation import MessageDecision
from .followup import REASONS
from .instance import LONGEST_LINE, Workflow, read
from .repository import ConversationMessage, WorkflowEntry, WorkflowRepository, withdraw
from .reruns import message_from_row
from .settings import WorkflowSettings
from .state_machine import ANSWERABLE

_BACK = 200  # messages among which an earlier edit of the same one is looked for
_UNDER_WAY = "under way"


class ChangeAction(StrEnum):
    """What is done about a change."""

    NOTHING = "nothing came of the message"
    REWORD = "the message is kept, and reads as it was edited"
    DROP = "the message was kept, and is not worked through"
    HEAR = "heard like something newly said"
    REPLACE = "it stands in the place of what was said before"
    WITHDRAW = "its request was open, and is dropped"
    SAY = "its request is open, and others go on with it"
    TELL = "it had been acted on"


class EditPipeline(Protocol):
    """The pipeline."""

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        """Work through one message."""

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        """Whether a message asks for the same after it was edited."""


class ChangeContext(NamedTuple):
    """An edit or a delete, with what came of the message it is about."""

    item: MessageChange
    before: ConversationMessage  # as it was worked through
    now: ConversationMessage  # the edit or the delete itself
    hearing: Row
    flow: Workflow | None


def change_action(hearing: Row, flow: Workflow | None, *, is_deleted: bool) -> ChangeAction:
    """What is done about a change. Pure."""
    if hearing["deferred"] is not None:
        return ChangeAction.DROP if is_deleted else ChangeAction.REWORD
    if hearing["decision"] == "by_hand" or (flow is not None and flow.plan is not None):
        return ChangeAction.TELL
    if flow is None or flow.stage not in ANSWERABLE:
        return ChangeAction.NOTHING if is_deleted else ChangeAction.HEAR
    words = [line for line in flow.thread if not line.is_ours]
    if all(line.text == hearing["text"][:LONGEST_LINE] for line in words):
        return ChangeAction.WITHDRAW if is_deleted else ChangeAction.REPLACE
    return ChangeAction.SAY if is_deleted else ChangeAction.HEAR


class EditProcessor:
    """What the kernel runs for an edit or a delete, in the order of its conversation."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: WorkflowSettings,
        book: WorkflowRepository,
        pipeline: EditPipeline,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._book = book
        self._pipeline = pipeline

    async def handle_change(self, item: MessageChange) -> Outcome:
        """One attempt."""
        try:
            hearing = await self._heard(item)
            if hearing is None:
                return Done("nothing was done yet about the message it belongs to")
            change = await self._change(item, hearing)
            if item.text is not None and hearing["text"] == change.now.text:
                return Done("the message it belongs to was worked through as it reads now")
            return await self._do(change)
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)

    async def _heard(self, item: MessageChange) -> Row | None:
        """The newest word on the message: the last edit of it that was worked through, or itself."""
        found = await self._store.read("inbox_original", source=item.source, original=item.original)
        if not found:
            return None
        first = found[0]["id"]
        own = await self._store.read("handled_message_find", message=first)
        newest = await self._store.read(
            "handled_message_newest", tenant=item.tenant, conversation=item.conversation, limit=_BACK
        )
        for row in newest:
            if (
                row["decision"] != MessageDecision.CHANGED
                and row["message"] != item.id
                and _original(row) == first
            ):
                return (await self._store.read("handled_message_find", message=row["message"]))[0]
        return own[0] if own else None

    async def _change(self, item: MessageChange, hearing: Row) -> ChangeContext:
        before = message_from_row(hearing)
        flow = None
        if hearing["workflow"] is not None:
            rows = await self._store.read("workflow_find", id=hearing["workflow"], tenant=item.tenant)
            flow = read(rows[0]) if rows else None
        text = item.text or ""
        named = find_impersonation(text)
        now = before._replace(
            message=item.id,
            text=text if named is None else named.rest,
            at=item.sent_at,
            verdict=None,
            changes=_original(hearing) or hearing["message"],
            is_last_try=item.is_last_try,
            reply_to=item.original if flow is not None and flow.stage in ANSWERABLE else None,
            place=item.n,
        )
        return ChangeContext(item, before, now, hearing, flow)

    async def _do(self, change: ChangeContext) -> Outcome:
        which = change_action(change.hearing, change.flow, is_deleted=change.item.text is None)
        match which:
            case ChangeAction.NOTHING:
                return Done(which)
            case ChangeAction.HEAR | ChangeAction.REPLACE:
                return await self._hear(change, change.flow if which is ChangeAction.REPLACE else None)
            case ChangeAction.TELL if change.item.text is not None and await self._pipeline.is_same_request(
                change.before, change.now._replace(at=change.before.at)
            ):
                return Done("it had been acted on, and asks for the same")
        standing = await self._book.standing(change.now)
        if standing.is_over:
            return Done("it was worked through before")
        entry = await self._entry(change, which, is_silent=standing.holder is not None)
        if not await self._book.write(entry, standing):
            return Defer(self._clock.now(), "the conversation has changed meanwhile")
        return Done(f"{entry.decision}: {entry.reason}")

    async def _hear(self, change: ChangeContext, instead_of: Workflow | None) -> Outcome:
        """Work through an edit as its speaker's, who must still be on the roster."""
        speaker = await self._speaker(change)
        if speaker is None:
            return Done(f"{change.before.speaker.id} is no longer on the roster")
        return await self._pipeline.work(change.now._replace(speaker=speaker), instead_of=instead_of)

    async def _speaker(self, change: ChangeContext) -> Speaker | None:
        wanted = orjson.dumps([change.before.speaker.id]).decode()
        rows = await self._store.read("roster_of", tenant=change.item.tenant, senders=wanted)
        rows = [row for row in rows if row["source"] in ("", change.item.source)]
        return speaker_of(max(rows, key=lambda row: str(row["source"]))) if rows else None

    async def _entry(self, change: ChangeContext, which: ChangeAction, *, is_silent: bool) -> WorkflowEntry:
        """What is written about a change of something that is not newly worked through."""
        flow, now = change.flow, self._clock.now()
        entry = WorkflowEntry(change.now, MessageDecision.CHANGED, which, of=flow.id if flow else None)
        kept = {"message": change.hearing["message"]}
        match which:
            case ChangeAction.REWORD:
                entry.also.append(
                    Step("handled_message_reword", {**kept, "text": change.now.text}, needed=True)
                )
            case ChangeAction.DROP:
                dropped = {**kept, "decision": "changed", "reason": "its sender deleted it", "at": now}
                entry.also.append(Step("handled_message_drop", dropped, needed=True))
            case ChangeAction.WITHDRAW if flow is not None:
                withdraw(entry, flow, now, idle=micros(self._settings.idle))
                entry.replies.append(reply_texts.withdrawn())
            case ChangeAction.SAY if flow is not None:
                entry.replies.append(reply_texts.deleted_answer(change.before.speaker.name, flow.requests))
            case _:
                await self._tell(change, entry)
        if is_silent:
            entry.replies.clear()
        return entry

    async def _tell(self, change: ChangeContext, entry: WorkflowEntry) -> None:
        """The group and the admins hear what was done and what was not."""
        is_deleted = change.item.text is None
        did = "deleted" if is_deleted else "edited"
        issue = f"a message was {did} after it had been acted on"
        if not is_deleted:
            issue += f"; it says now: {change.now.text[:200]!r}"
        results = await self._results(change.flow)
        if results:
            text = reply_texts.changed_late(change.before.speaker.name, results, is_deleted=is_deleted)
            entry.replies.append(text)
            done = [
                f"{reply_texts.command(each.command)}: {'done' if each.is_done else each.reason}"
                for each in results
            ]
            issue += f"; what came of it stays: {'; '.join(done)}"
        else:
            issue += "; a person had dealt with it by hand"
        speaker, flow = change.before.speaker, change.flow
        call = Escalation(
            "inbox_changed", issue, f"inbox_changed:{change.now.changes}", speaker.squad, speaker.name,
            change.before.text, flow.id if flow else None,
        )  # fmt: skip
        entry.calls.append(call)

    async def _results(self, flow: Workflow | None) -> list[reply_texts.CommandResult]:
        if flow is None or flow.plan is None:
            return []
        plans = orjson.dumps([flow.plan]).decode()
        return [_result(row) for row in await self._store.read("followup_results", plans=plans)]


def _result(row: Row) -> reply_texts.CommandResult:
    state = EffectState(row["state"])
    reason = REASONS.get(state, _UNDER_WAY)
    return reply_texts.CommandResult(command_of(row), state is EffectState.CONFIRMED, reason)


def _original(hearing: Row) -> str | None:
    """The message that this was an edit of."""
    if '"changes"' not in hearing["facts"]:
        return None
    facts: list[dict[str, Any]] = orjson.loads(hearing["facts"])
    return next((fact["message"] for fact in facts if fact["what"] == "changes"), None)
