"""Ingestion: writes new messages, their tasks and the cursor in one transaction, with deduplication.

A message is unique by (source, platform id), so duplicates are dropped. A page takes as few transactions as
its order allows, each with the cursor after its last message. If a message cannot be written, the messages
before it are, and the cursor stays before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.errors import TemporaryError, error_text
from ..model.task import NewTask
from ..model.time import micros
from ..observability.events import Emit, MessagesReceived, discard_event
from ..store.port import Row, Step, Store, TableRows, WriteConflict
from .admission import CHANGES, AdmissionResult, SenderLookup, admit, find_impersonation
from .domain import IncomingKind, IncomingMessage
from .leases import SourceLease
from .opt_out_keywords import TwoWayChannels, keyword_effects
from .roster import Roster
from .sender_ids import identify
from .source_notices import CHANGED, FAILING, NoticeSteps, SourceNotice, notice_event_steps
from .sources.port import SourceEntry
from .sources.settings import SourceSettings

QUEUE = "inbound"
KIND = "inbound_message"
NOTIFY_AFTER = 3  # consecutive failures before an admin is notified
LONGEST_TEXT = 100_000
LARGEST_RAW = 64 * 1024
COLUMNS = (
    "id", "tenant", "source", "platform_id", "conversation", "chat", "sender", "name", "kind", "original",
    "reply_to", "attachments", "sent_at", "received_at", "speaks_for", "text", "raw",
)  # fmt: skip
_TEXTS = ("id", "conversation", "sender", "name", "text", "original", "reply_to", "key", "user_id", "formerly")
_MOST = 500  # messages per transaction


class IngestionResult(NamedTuple):
    """The counts of one page."""

    handled: int = 0
    ended: int = 0  # skipped or expired on arrival
    known: int = 0  # duplicates


class IngestionFailed(Exception):
    """A message could not be written; the messages before it were, and the cursor stays before it."""


class _AdmittedEntry(NamedTuple):
    id: str
    filed: AdmissionResult
    cursor: str | None
    steps: Sequence[Step] = ()  # what it changes besides the inbox
    reply: tuple[NewTask, tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True)
class InboxIngestion:
    """The only writer of new inbox rows."""

    store: Store
    clock: Clock
    roster: Roster
    _: KW_ONLY
    production: bool = True
    tell: NoticeSteps = notice_event_steps
    emit: Emit = discard_event
    channels: TwoWayChannels | None = None

    async def take(
        self, source: SourceSettings, entries: Sequence[SourceEntry], *, lease: SourceLease | None = None
    ) -> IngestionResult:
        """Write the new messages; raises IngestionFailed, or WriteConflict if the lease is lost."""
        fresh = await self._fresh(source, entries)
        pieces = await self._filed(source, fresh, since=0 if lease is None else lease.since)
        for run in _runs(pieces):
            await self._write(source, run, lease)
        ended = sum(piece.filed.ended is not None for piece in pieces)
        taken = IngestionResult(len(pieces) - ended, ended, len(entries) - len(pieces))
        if taken.handled:
            await self.store.hint()
        if pieces:
            self.emit(MessagesReceived(source.name, *taken))
        return taken

    async def called(self, source: SourceSettings, messages: Sequence[IncomingMessage]) -> IngestionResult:
        """Ingest the messages of a webhook. A failure is counted and raised, so that the platform retries."""
        try:
            taken = await self.take(source, [SourceEntry(one) for one in messages])
        except IngestionFailed as error:
            await self._failed(source, str(error))
            raise
        await self.store.write([Step("source_well", {"name": source.name})])
        return taken

    async def known(self, source: SourceSettings, ids: Sequence[str]) -> set[str]:
        """Return which of these platform ids are already in the inbox."""
        listed = orjson.dumps([_clean(id_) for id_ in ids]).decode()
        rows = await self.store.read("inbox_known", source=source.name, ids=listed)
        return {row["platform_id"] for row in rows}

    async def _fresh(self, source: SourceSettings, entries: Sequence[SourceEntry]) -> list[SourceEntry]:
        """Return the new messages without duplicates."""
        if not entries:
            return []
        cleaned = [entry._replace(incoming=_cleaned(entry.incoming)) for entry in entries]
        seen = await self.known(source, [entry.incoming.id for entry in cleaned])
        fresh = []
        for entry in cleaned:
            if entry.incoming.id not in seen:
                seen.add(entry.incoming.id)
                fresh.append(entry)
        return fresh

    async def _filed(
        self, source: SourceSettings, entries: Sequence[SourceEntry], *, since: int
    ) -> list[_AdmittedEntry]:
        """Look up the senders and decide about each message."""
        if not entries:
            return []
        identified = await identify(self.store, source, entries, self.tell)
        said = [entry.incoming for entry in identified]
        ours = await self._ours(said)
        speakers = await self.roster.speakers(source, [one.sender for one in said])
        now = self.clock.now()
        pieces = []
        channel = None if self.channels is None else self.channels.channel_of(source)
        for entry in identified:
            one = entry.incoming
            named = find_impersonation(one.text) if one.kind is IncomingKind.MESSAGE else None
            people = () if named is None else await self.roster.called(source, named.name)
            known = SenderLookup(speakers.get(one.sender), _own_key(one) in ours, people, channel is not None)
            filed = admit(one, source, known, now=now, since=since, production=self.production)
            piece = _AdmittedEntry(self.clock.new_id(), filed, entry.cursor, entry.steps)
            pieces.append(piece if channel is None else await self._answered(source, piece, channel, now))
        return pieces

    async def _answered(self, source: SourceSettings, piece: _AdmittedEntry, channel: str, now: int) -> _AdmittedEntry:
        """Add the effects of a keyword."""
        filed = piece.filed
        if filed.keyword is None or self.channels is None:
            return piece
        done = await keyword_effects(
            filed.keyword, filed.incoming, source, self.channels, channel=channel, id_=piece.id,
            conversation=conversation_of(source, filed.incoming), now=now,
        )  # fmt: skip
        filed = filed._replace(reason=done.reason)
        return piece._replace(filed=filed, steps=[*piece.steps, *done.steps], reply=done.reply)

    async def _ours(self, said: Sequence[IncomingMessage]) -> set[str | None]:
        """Return the keys that belong to messages sent by Tidings."""
        keys = [key for one in said if (key := _own_key(one)) is not None]
        if not keys:
            return set()
        rows = await self.store.read("inbox_ours", ids=orjson.dumps(keys).decode())
        return {row["id"] for row in rows}

    async def _write(self, source: SourceSettings, run: Sequence[_AdmittedEntry], lease: SourceLease | None) -> None:
        """Write a run in one transaction; if that fails, message by message."""
        try:
            await self._write_together(source, run, lease)
        except (TemporaryError, WriteConflict):
            raise
        except Exception as error:  # a message that the database rejects must not block the others
            if len(run) > 1:
                for piece in run:
                    await self._write(source, [piece], lease)
                return
            one = run[0].filed.incoming
            if await self.known(source, [one.id]):
                return  # a webhook and a poll delivered it at the same time
            raise IngestionFailed(f"message {one.id[:60]!r} could not be written: {error_text(error)}"[:500]) from error

    async def _write_together(
        self, source: SourceSettings, run: Sequence[_AdmittedEntry], lease: SourceLease | None
    ) -> None:
        now = self.clock.now()
        handled = [piece for piece in run if piece.filed.ended is None]
        rows = [_row(source, piece, now) for piece in handled]
        steps = [lease.move(run[-1].cursor)] if lease is not None and run[-1].cursor is not None else []
        steps += self._marks(source, run, now, len(steps))
        tasks = [_task(source, piece.filed.incoming, now) for piece in handled]
        own = [TableRows("inbox", COLUMNS, [tuple(row[name] for name in COLUMNS) for row in rows])] if rows else []
        replies = [piece.reply for piece in run if piece.reply is not None]
        if replies and self.channels is not None:
            tasks += [task for task, _ in replies]
            own.append(TableRows(self.channels.table, self.channels.columns, [row for _, row in replies]))
        if tasks:
            await self.store.enqueue(tasks, *own, also=steps)
        else:
            await self.store.write(steps)

    def _marks(self, source: SourceSettings, run: Sequence[_AdmittedEntry], now: int, before: int) -> list[Step]:
        """Return the steps for messages that ended on arrival, edits and deletions, and the roster's log."""
        over = [piece for piece in run if piece.filed.ended is not None]
        steps: list[Step] = []
        if over:
            rows = [
                _row(source, piece, now) | {"ended": piece.filed.ended, "reason": piece.filed.reason} for piece in over
            ]
            steps.append(Step("inbox_add", {"rows": orjson.dumps(rows).decode()}))
        for one in (piece.filed.incoming for piece in run):
            if one.kind in CHANGES:
                steps += self._changed(source, one, before + len(steps))
        notes = [
            {"source": source.name, "sender": filed.incoming.sender, "what": filed.note[0], "detail": filed.note[1]}
            for filed in (piece.filed for piece in run)
            if filed.note is not None
        ]
        if notes:
            steps.append(Step("roster_note", {"tenant": source.tenant, "rows": orjson.dumps(notes).decode()}))
        return [*steps, *(step for piece in run for step in piece.steps)]

    def _changed(self, source: SourceSettings, one: IncomingMessage, place: int) -> list[Step]:
        """Mark the message that its author edits or deletes; notify if it was handled before.

        A change by another sender, or from another conversation, marks nothing.
        """
        which = {
            "source": source.name, "original": one.original, "chat": one.conversation, "sender": one.sender
        }  # fmt: skip
        text = one.text if one.kind is IncomingKind.EDIT else None
        late = Step("inbox_late", {**which, "text": text})
        told = [step._replace(only_if=place) for step in self.tell(_too_late(source, one))]
        if text is None:
            return [late, *told, Step("inbox_delete", {**which, "at": one.at})]
        return [late, *told, Step("inbox_edit", {**which, "at": one.at, "text": text})]

    async def _failed(self, source: SourceSettings, problem: str) -> None:
        failed = {"name": source.name, "token": None, "problem": problem}
        rows = (await self.store.write([Step("source_failed", failed)]))[0]
        if rows and rows[0]["failures"] == NOTIFY_AFTER:
            await self.store.write(list(self.tell(source_failing_notice(source, problem))))


def _too_late(source: SourceSettings, one: IncomingMessage) -> SourceNotice:
    """Build the notice about a change that came after its message was handled."""
    is_edit = one.kind is IncomingKind.EDIT
    did = f"edited a message; new text: {one.text[:200]!r}" if is_edit else "deleted a message"
    return SourceNotice(
        CHANGED,
        source.tenant,
        source.name,
        f"{one.name or one.sender} {did}; it had already been handled (message {one.original})",
        "check whether its result is still wanted (tidings inbox list)",
        f"{source.name}/{one.original}",
    )


def source_failing_notice(source: SourceSettings, problem: str) -> SourceNotice:
    """Build the notice about three consecutive failures."""
    return SourceNotice(
        FAILING,
        source.tenant,
        source.name,
        f"source {source.name} has failed {NOTIFY_AFTER} times in a row: {problem}",
        "fix the cause; no messages are lost, and reading resumes where it stopped (tidings inbox sources)",
    )


def conversation_of(source: SourceSettings, incoming: IncomingMessage) -> str:
    """Return the name of a conversation, unique over all sources; it is also the ordering key."""
    return f"{source.name}/{incoming.conversation}"


def _runs(pieces: Sequence[_AdmittedEntry]) -> Iterator[Sequence[_AdmittedEntry]]:
    """Split a page into transactions that keep its order: handled messages first, then ended ones."""
    start = 0
    for place in range(1, len(pieces) + 1):
        is_end = place == len(pieces) or place - start == _MOST
        if is_end or (pieces[place - 1].filed.ended is not None and pieces[place].filed.ended is None):
            yield pieces[start:place]
            start = place


def _task(source: SourceSettings, incoming: IncomingMessage, now: int) -> NewTask:
    return NewTask(
        QUEUE,
        KIND,
        now,
        source.tenant,
        ordering_key=conversation_of(source, incoming),
        expires_at=min(incoming.at, now) + micros(source.expire_after),
    )


def _row(source: SourceSettings, piece: _AdmittedEntry, now: int) -> Row:
    one = piece.filed.incoming
    return {
        "id": piece.id,
        "tenant": source.tenant,
        "source": source.name,
        "platform_id": one.id,
        "conversation": conversation_of(source, one),
        "chat": one.conversation,
        "sender": one.sender,
        "name": one.name,
        "kind": one.kind.value,
        "original": one.original,
        "reply_to": one.reply_to,
        "attachments": one.attachments,
        "sent_at": one.at,
        "received_at": now,
        "speaks_for": piece.filed.speaks_for,
        "text": one.text,
        "raw": _raw(one.raw),
    }


def _own_key(incoming: IncomingMessage) -> str | None:
    """Return the id of our own message with this key; parts of a long text have a suffix after a dot."""
    return None if incoming.key is None else incoming.key.partition(".")[0]


def _cleaned(incoming: IncomingMessage) -> IncomingMessage:
    """Return the message in a form that every database can store."""
    texts = {name: getattr(incoming, name) for name in _TEXTS}
    cleaned: dict[str, Any] = {name: _clean(text) for name, text in texts.items() if text is not None}
    return incoming._replace(**{**cleaned, "text": cleaned["text"][:LONGEST_TEXT]})


def _clean(text: str) -> str:
    """Replace NUL characters and lone surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _raw(payload: Mapping[str, Any] | None) -> str | None:
    """Serialize the payload; None if it is too large."""
    if payload is None:
        return None
    try:
        encoded = orjson.dumps(payload, default=str).decode()
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        return None
    return encoded.replace("\\u0000", "\\ufffd") if len(encoded) <= LARGEST_RAW else None
