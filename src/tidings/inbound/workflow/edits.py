"""Edits and deletions of messages that were already handled.

| the message led to | an edit | a deletion |
| --- | --- | --- |
| nothing | is handled like a new message | changes nothing |
| a deferred message | replaces its text | drops it |
| an open request of its author alone | replaces the request | drops the request |
| an open request of several people | is one more answer | is announced; the request stays open |
| calendar commands | is reported, unless it asks for the same | is reported |

A report goes to the chat and to an admin and lists what was done and what was not. It undoes nothing: undoing
takes a new message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import orjson

from ...kernel.clock import Clock
from ...model.errors import StoreFull, StoreUnavailable
from ...model.outcome import Defer, Done, Outcome
from ...model.time import SECOND
from ...store.port import Row, Step, Store
from ..admission import find_impersonation
from ..domain import ConversationMessage, Speaker
from ..escalation.reasons import Escalation
from ..message_handler import MessageChange
from ..roster import speaker_of
from . import reply_texts
from .correlation import MessageDecision
from .followup import command_result
from .instance import LONGEST_LINE, Workflow, read
from .repository import MessagePipeline, WorkflowEntry, WorkflowRepository, withdraw
from .reruns import message_from_row, original_of
from .settings import WorkflowSettings
from .state_machine import ANSWERABLE

_BACK = 200  # recent messages that are searched for an earlier edit of the same message


class ChangeAction(StrEnum):
    """What is done about an edit or a deletion; the value is the reason that people see."""

    NOTHING = "the message led to nothing"
    REWORD = "the deferred message now has the edited text"
    DROP = "the deferred message was dropped"
    HANDLE = "handled like a new message"
    REPLACE = "replaces the earlier message"
    WITHDRAW = "its open request was dropped"
    ANNOUNCE = "its request stays open because others have answered"
    REPORT = "it had already been acted on"


class ChangeContext(NamedTuple):
    """An edit or deletion with the handled message and its workflow."""

    item: MessageChange
    before: ConversationMessage  # as it was handled
    now: ConversationMessage  # the edit or deletion itself
    handled: Row
    flow: Workflow | None


def change_action(handled: Row, flow: Workflow | None, *, is_deleted: bool) -> ChangeAction:
    """Decide what to do about an edit or deletion. Pure."""
    if handled["deferred"] is not None:
        return ChangeAction.DROP if is_deleted else ChangeAction.REWORD
    if handled["decision"] == "by_hand" or (flow is not None and flow.plan is not None):
        return ChangeAction.REPORT
    if flow is None or flow.stage not in ANSWERABLE:
        return ChangeAction.NOTHING if is_deleted else ChangeAction.HANDLE
    words = [line for line in flow.thread if not line.is_ours]
    if all(line.text == handled["text"][:LONGEST_LINE] for line in words):
        return ChangeAction.WITHDRAW if is_deleted else ChangeAction.REPLACE
    return ChangeAction.ANNOUNCE if is_deleted else ChangeAction.HANDLE


@dataclass(slots=True)
class EditProcessor:
    """Handles edits and deletions, in the order of their conversation."""

    _store: Store
    _clock: Clock
    _settings: WorkflowSettings
    _repository: WorkflowRepository
    _pipeline: MessagePipeline

    async def handle_change(self, item: MessageChange) -> Outcome:
        try:
            handled = await self._heard(item)
            if handled is None:
                return Done("the original message has not been handled yet")
            change = await self._change(item, handled)
            if item.text is not None and handled["text"] == change.now.text:
                return Done("the original message was handled with this text")
            return await self._do(change)
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)

    async def _heard(self, item: MessageChange) -> Row | None:
        """Find the last handled edit of the message, or the message itself."""
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
                and row["message"] != item.message
                and original_of(row) == first
            ):
                return (await self._store.read("handled_message_find", message=row["message"]))[0]
        return own[0] if own else None

    async def _change(self, item: MessageChange, handled: Row) -> ChangeContext:
        before = message_from_row(handled)
        flow = None
        if handled["workflow"] is not None:
            rows = await self._store.read("workflow_find", id=handled["workflow"], tenant=item.tenant)
            flow = read(rows[0]) if rows else None
        text = item.text or ""
        named = find_impersonation(text)
        now = before._replace(
            message=item.message,
            text=text if named is None else named.rest,
            at=item.sent_at,
            verdict=None,
            changes=original_of(handled) or handled["message"],
            is_last_try=item.is_last_try,
            reply_to=item.original if flow is not None and flow.stage in ANSWERABLE else None,
            place=item.place,
        )
        return ChangeContext(item, before, now, handled, flow)

    async def _do(self, change: ChangeContext) -> Outcome:
        which = change_action(change.handled, change.flow, is_deleted=change.item.text is None)
        match which:
            case ChangeAction.NOTHING:
                return Done(which)
            case ChangeAction.HANDLE | ChangeAction.REPLACE:
                return await self._hear(change, change.flow if which is ChangeAction.REPLACE else None)
            case ChangeAction.REPORT if change.item.text is not None and await self._pipeline.is_same_request(
                change.before, change.now._replace(at=change.before.at)
            ):
                return Done("it had already been acted on and asks for the same")
        state = await self._repository.state(change.now)
        if state.is_over:
            return Done("it was handled before")
        entry = await self._entry(change, which, is_silent=state.holder is not None)
        if not await self._repository.write(entry, state):
            return Defer(self._clock.now(), "the conversation changed in the meantime")
        return Done(f"{entry.decision}: {entry.reason}")

    async def _hear(self, change: ChangeContext, instead_of: Workflow | None) -> Outcome:
        """Handle an edit like a new message; its author must still be on the roster."""
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
        """Build the entry of a change that does not run the pipeline again."""
        flow, now = change.flow, self._clock.now()
        entry = WorkflowEntry(change.now, MessageDecision.CHANGED, which, of=flow.id if flow else None)
        kept = {"message": change.handled["message"]}
        match which:
            case ChangeAction.REWORD:
                entry.also.append(Step("handled_message_reword", {**kept, "text": change.now.text}, needed=True))
            case ChangeAction.DROP:
                dropped = {**kept, "decision": "changed", "reason": "its sender deleted it", "at": now}
                entry.also.append(Step("handled_message_drop", dropped, needed=True))
            case ChangeAction.WITHDRAW if flow is not None:
                withdraw(entry, flow, now, self._settings)
                entry.replies.append(reply_texts.WITHDRAWN)
            case ChangeAction.ANNOUNCE if flow is not None:
                entry.replies.append(reply_texts.deleted_answer(change.before.speaker.name, flow.requests))
            case _:
                await self._tell(change, entry)
        if is_silent:
            entry.replies.clear()
        return entry

    async def _tell(self, change: ChangeContext, entry: WorkflowEntry) -> None:
        """Report to the chat and the admins what was done and what was not."""
        is_deleted = change.item.text is None
        did = "deleted" if is_deleted else "edited"
        issue = f"a message was {did} after it had been acted on"
        if not is_deleted:
            issue += f"; new text: {change.now.text[:200]!r}"
        results = await self._results(change.flow)
        if results:
            text = reply_texts.changed_late(change.before.speaker.name, results, is_deleted=is_deleted)
            entry.replies.append(text)
            done = [
                f"{reply_texts.command(each.command)}: {'done' if each.is_done else each.reason}" for each in results
            ]
            issue += f"; nothing was undone: {'; '.join(done)}"
        else:
            issue += "; someone had handled it manually"
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
        return [command_result(row) for row in await self._store.read("followup_results", plans=plans)]
