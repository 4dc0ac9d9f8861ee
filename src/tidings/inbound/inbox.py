"""The inbox for the interfaces: lists, shows and retries inbound messages.

States: received (waits for earlier messages of its conversation), pending, processing, done, failed, expired,
skipped. They are derived from the message's task; rows are never deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from ..inputs.pagination import Page, decode_position, page_size
from ..kernel import task_actions
from ..kernel.clock import Clock
from ..kernel.task_actions import TaskActionResult
from ..model.errors import Conflict, Invalid, NotFound
from ..model.task import NewTask
from ..model.time import iso, micros
from ..store.port import Row, Step, Store, WriteConflict
from .admission import retry_refusal
from .ingestion import KIND, QUEUE
from .sources.settings import SourceSettings

STATES = ("received", "pending", "processing", "done", "failed", "expired", "skipped")
WINDOW = 20_000  # rows searched for one page
_USUAL_AGE = timedelta(hours=24)


class Inbox:
    """Lists, shows and retries inbound messages; lists sources."""

    def __init__(self, store: Store, clock: Clock, sources: Mapping[str, SourceSettings]) -> None:
        self._store = store
        self._clock = clock
        self._sources = sources

    async def page(
        self,
        *,
        state: str | None = None,
        source: str | None = None,
        conversation: str | None = None,
        sender: str | None = None,
        limit: int = 50,
        after: str | None = None,
        tenant: str = "default",
    ) -> Page:
        """List messages, newest first. Any page may be short; only the last one has no `next`."""
        if state is not None and state not in STATES:
            raise Invalid(f"unknown state {state[:40]!r}", field="state", remedy=f"use one of: {', '.join(STATES)}")
        page_size(limit)
        top = (await self._store.read("inbox_top"))[0]["n"] + 1
        before = min(decode_position(after), top)
        floor = max(0, before - WINDOW)
        which = {"state": state, "source": source, "conversation": conversation, "sender": sender}
        rows = await self._store.read("inbox_page", before=before, floor=floor, limit=limit, tenant=tenant, **which)
        if len(rows) == limit:
            return Page([described(row) for row in rows], str(rows[-1]["n"]))
        return Page([described(row) for row in rows], str(floor) if floor > 1 else None)

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """Show one message with its history and raw payload."""
        row = await self._find(id_, tenant)
        steps = [] if row["task"] is None else await self._store.read("history_of", task=row["task"])
        return {
            **described(row),
            "raw": None if row["raw"] is None else orjson.loads(row["raw"]),
            "history": [_step(step) for step in steps],
        }

    async def retry(self, id_: str, *, tenant: str = "default") -> Row:
        """Retry a failed message with all its attempts, at its place in the conversation.

        A skipped or expired message is handled after the waiting messages of its conversation.
        """
        row = await self._find(id_, tenant)
        source = self._sources.get(row["source"])
        now = self._clock.now()
        expires = now + micros(_USUAL_AGE if source is None else source.expire_after)
        if row["state"] in ("skipped", "expired"):
            await self._take_up(row, now, expires)
        elif row["state"] == "failed":
            answer, _ = await task_actions.retry(
                self._store, row["task"], due_at=now, expires_at=expires, reason="a person asked for it"
            )
            if answer is not TaskActionResult.DONE:
                raise _changed(row)
        else:
            raise Conflict(
                f"the message is {row['state']}",
                remedy="only failed, skipped or expired messages can be retried; ask the sender to repeat it",
            )
        await self._store.hint()
        return await self.show(id_, tenant=tenant)

    async def _take_up(self, row: Row, now: int, expires: int) -> None:
        """Create a task for a message that was skipped or has expired."""
        if (refused := retry_refusal(row)) is not None:
            raise Conflict(f"the message is {row['state']}: {refused[0]}", remedy=refused[1])
        speaker = row["speaks_for"] or row["sender"]
        wanted = orjson.dumps([speaker]).decode()
        people = await self._store.read("roster_of", tenant=row["tenant"], senders=wanted)
        if not any(person["source"] in ("", row["source"]) for person in people):
            raise Conflict(
                f"its sender {speaker[:60]} is not on the roster",
                remedy=f"add the sender (tidings roster add {speaker[:60]} …), then retry",
            )
        task = NewTask(QUEUE, KIND, now, row["tenant"], ordering_key=row["conversation"], expires_at=expires)
        again = Step("inbox_again", {name: row[name] for name in ("n", "task", "ended")}, needed=True)
        try:
            await self._store.enqueue([task], also=[again])
        except WriteConflict:
            raise _changed(row) from None

    async def sources(self, *, tenant: str = "default") -> list[Row]:
        """List sources with cursor and last problem; unconfigured ones belong to the default tenant."""
        rows = {row["name"]: row for row in await self._store.read("source_list", limit=1000)}
        whose = {name: "default" for name in rows} | {name: one.tenant for name, one in self._sources.items()}
        names = sorted(name for name, owner in whose.items() if owner == tenant)
        return [_source(name, rows.get(name), self._sources.get(name)) for name in names]

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("inbox_find", id=id_, tenant=tenant)
        if not rows:
            raise NotFound(f"unknown message {id_[:60]!r}", field="id", remedy="see: tidings inbox list")
        return rows[0]


def _changed(row: Row) -> Conflict:
    return Conflict("the message changed in the meantime", remedy=f"check it again: tidings inbox show {row['id']}")


def described(row: Row) -> Row:
    """Return the public fields of a message."""
    waits = row["state"] in ("received", "pending")
    columns = (
        "source", "conversation", "chat", "sender", "name", "kind", "text", "attachments", "platform_id",
        "original", "reply_to", "speaks_for",
    )  # fmt: skip
    return {
        "id": row["id"],
        "state": row["state"],
        "reason": row["reason"] or _REASONS.get(row["state"]),
        **{name: row[name] for name in columns},
        "sent_at": iso(row["sent_at"]),
        "received_at": iso(row["received_at"]),
        "attempts": row["attempts"] or 0,
        "next_try_at": iso(row["due_at"]) if waits else None,
        "expires_at": iso(row["expires_at"]) if waits else None,
        "edited_text": row["edited_text"],
        "edited_at": iso(row["edited_at"]),
        "deleted_at": iso(row["deleted_at"]),
    }


_REASONS = {
    "received": "waiting for earlier messages of its conversation",
    "expired": "it expired before it was handled",
}


def _step(step: Row) -> Row:
    names = ("origin", "state", "attempt", "node", "node_name", "category")
    kept: dict[str, Any] = {name: step[name] for name in names}
    return {"at": iso(step["at"]), **kept, "detail": step["detail"]}


def _source(name: str, row: Row | None, settings: SourceSettings | None) -> Row:
    known = row or dict.fromkeys(("known_at", "cursor", "holder", "began_at", "read_at", "problem"))
    return {
        "name": name,
        "kind": settings.kind if settings is not None else known.get("kind"),
        "how": None if settings is None else "polled" if settings.is_polled else "called",
        "cursor": known["cursor"],
        "known_at": iso(known["known_at"]),
        "read_at": iso(known["read_at"]),
        "reading_since": iso(known["began_at"]),
        "consecutive_failures": 0 if row is None else row["failures"],
        "problem": known["problem"],
    }
