"""Conversations for the interfaces: each message with its steps, decision, scores, prompts and cost."""

from __future__ import annotations

from typing import Any

import orjson

from ...inputs.pagination import Page, decode_position, page_size
from ...model.errors import NotFound
from ...model.time import iso
from ...store.port import Row, Store

LINES = 200  # messages per page
WINDOW = 20_000  # inbox rows that are searched
_COSTS = ("prompt", "version", "model", "tokens_in", "tokens_out", "cost", "ms", "error", "state")


class Conversations:
    """Lists and shows conversations."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, *, tenant: str = "default", limit: int = 50, after: str | None = None) -> Page:
        """List conversations, most recently active first."""
        rows = await self._store.read(
            "conversation_page", tenant=tenant, before=decode_position(after), limit=page_size(limit)
        )
        items = [
            {"conversation": row["conversation"], "messages": row["handled_messages"], "last_at": iso(row["at"])}
            for row in rows
        ]
        return Page(items, str(rows[-1]["n"]) if len(rows) == limit else None)

    async def show(self, conversation: str, *, tenant: str = "default", after: str | None = None) -> Row:
        """Show one conversation, oldest first: messages with their decisions, and other steps."""
        first = 0 if after is None else decode_position(after)
        of: dict[str, Any] = {"tenant": tenant, "conversation": conversation}
        handled_messages = await self._store.read("handled_message_page", after=first, limit=LINES, **of)
        if not handled_messages and after is None:
            raise await explain_missing_conversation(self._store, conversation, tenant)
        steps = await self._store.read("step_page", after=0, limit=1000, **of)
        flows = await self._store.read("workflow_newest", limit=50, **of)
        calls = await self._calls([handled["message"] for handled in handled_messages])
        lines = [_message(handled, calls.get(handled["message"], [])) for handled in handled_messages]
        return {
            "conversation": conversation,
            "lines": sorted([*lines, *(_step(step) for step in steps)], key=lambda line: str(line["at"])),
            "workflows": [_flow(flow) for flow in flows],
            "next": str(handled_messages[-1]["n"]) if len(handled_messages) == LINES else None,
        }

    async def _calls(self, messages: list[str]) -> dict[str, list[Row]]:
        """Return the model calls that these messages caused."""
        found: dict[str, list[Row]] = {}
        for row in await self._store.read("model_calls_of", traces=orjson.dumps(messages).decode()):
            shown = {name: row[name] for name in _COSTS}
            found.setdefault(row["trace"], []).append({**shown, "at": iso(row["at"])})
        return found


async def explain_missing_conversation(store: Store, conversation: str, tenant: str) -> NotFound:
    """Explain why a conversation was not found: the id is a message's, or all its messages were skipped."""
    found = await store.read("inbox_find", id=conversation, tenant=tenant)
    if found:
        named = found[0]["conversation"]
        return NotFound(f"{conversation} is a message, not a conversation", remedy=f"use its conversation: {named}")
    top = (await store.read("inbox_top"))[0]["n"] + 1
    which = {"conversation": conversation, "state": None, "source": None, "sender": None}
    window = {"before": top, "floor": max(0, top - WINDOW), "limit": 1}
    if await store.read("inbox_page", tenant=tenant, **which, **window):
        return NotFound(
            f"no message of {conversation[:80]!r} has been handled",
            remedy=f"see why: tidings inbox list --conversation {conversation[:80]}",
        )
    return NotFound(f"unknown conversation {conversation[:80]!r}", remedy="see: tidings inbox conversations")


def _message(handled: Row, calls: list[Row]) -> Row:
    speaker = orjson.loads(handled["speaker"])
    return {
        "kind": "message",
        "message": handled["message"],
        "at": iso(handled["sent_at"]),
        "name": speaker["name"],
        "squad": handled["squad"],
        "role": speaker["role"],
        **{name: handled[name] for name in ("text", "decision", "reason", "deferred", "workflow")},
        "steps": [{**fact, "at": iso(fact["at"])} for fact in orjson.loads(handled["facts"])],
        "calls": calls,
    }


def _step(step: Row) -> Row:
    columns = {"what": step["what"], "workflow": step["workflow"], "facts": orjson.loads(step["facts"])}
    return {"kind": "step", "at": iso(step["at"]), **columns}


def _flow(flow: Row) -> Row:
    kept = ("id", "squad", "topic", "state", "asked", "plan", "version")
    times = {name: iso(flow[name]) for name in ("opened_at", "changed_at", "closed_at")}
    return {**{name: flow[name] for name in kept}, **times}
