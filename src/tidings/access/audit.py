"""The audit log: who did what, when, to which target, from which address. Append-only, pruned by age.

Entries form a hash chain: each has the SHA-256 of its content and of the previous hash (`audit_chain`), so a
changed or deleted entry breaks the chain. Retention prunes the oldest entries and moves the chain's start.

An entry never contains a body, a query or a secret: only the action, its target and its result. Written:

    key changes       in the transaction of the change
    other changes     after the change, before the response; a crash in between loses the entry
    new messages      after the response, in batches (`note_soon`): the message itself is the record
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from ..inputs.pagination import Page, decode_position, page_size
from ..model.errors import NotFound, TidingsError
from ..model.time import iso
from ..store.port import Row, Step, Store
from .caller import Caller
from .permissions import DEFAULT_TENANT

MAX_TEXT = 200
PAGE = 1000
PRUNE = ("audit_checkpoint", "audit_prune")  # in one transaction, in this order
_SECRET = re.compile(r"tdk_([0-9a-z]{8})_[\w-]+")
_log = logging.getLogger("tidings.access")


class AuditEntry(NamedTuple):
    """One action, whether it succeeded or not."""

    tenant: str
    actor: str
    key: str | None
    action: str
    target: str | None = None
    origin: str | None = None
    status: int | None = None
    request: str | None = None
    detail: str | None = None


def audit_entry(caller: Caller, action: str, *, target: str | None = None, **more: Any) -> AuditEntry:
    """Return an entry for this caller, without secrets and control characters."""
    fields: dict[str, Any] = {
        name: sanitize(value) if isinstance(value, str) else value for name, value in more.items()
    }
    return AuditEntry(
        caller.tenant, caller.who, caller.key, action, sanitize(target), sanitize(caller.origin), **fields
    )


def sanitize(text: str | None) -> str | None:
    """Shorten a text, replace unprintable characters, and mask the secret part of keys."""
    if text is None:
        return None
    masked = _SECRET.sub(r"tdk_\1_***", text)[:MAX_TEXT]
    return masked if masked.isprintable() else "".join(c if c.isprintable() else " " for c in masked)


def step(entries: Sequence[AuditEntry]) -> Step:
    """Return the step that adds entries, for a transaction."""
    rows = [{**one._asdict(), "digest": digest(one)} for one in entries]
    return Step("audit_add", {"rows": orjson.dumps(rows).decode()})


def digest(content: Sequence[Any]) -> str:
    """Return the hash of an entry's fields in order."""
    return hashlib.sha256(orjson.dumps(list(content))).hexdigest()


class AuditLog:
    """Writes and reads the audit log."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[AuditEntry] = []
        self._writing: asyncio.Task[None] | None = None

    async def note(self, entry: AuditEntry) -> None:
        """Write an entry. If that fails, the entry goes to the log: the action itself has happened."""
        try:
            await self._store.write([step([entry])])
        except TidingsError as error:
            _log.error("audit entry %s could not be written: %s", entry, error.problem)

    def note_soon(self, entry: AuditEntry) -> None:
        """Write an entry in the background; entries that arrive during a write form the next batch."""
        self._waiting.append(entry)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Wait until all entries are written."""
        if self._writing is not None:
            await self._writing

    async def page(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        of: str | None = None,
        limit: int = 50,
        after: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Page:
        """List entries, newest first; `of` is another tenant, or * for all (tenant default only)."""
        rows = await self._store.read(
            "audit_page",
            tenant=visible_tenant(of, tenant),
            actor=actor,
            action=action,
            before=decode_position(after),
            limit=page_size(limit),
        )
        return Page([described(row) for row in rows], str(rows[-1]["n"]) if len(rows) == limit else None)

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:PAGE], self._waiting[PAGE:]
            try:
                await self._store.write([step(batch)])
            except TidingsError as error:
                _log.error("%d audit entries could not be written: %s", len(batch), error.problem)


def visible_tenant(of: str | None, tenant: str) -> str | None:
    """Return the tenant to show, None for all; only the tenant default may see others."""
    if of is None or of == tenant:
        return tenant
    if tenant != DEFAULT_TENANT:
        raise NotFound(f"there is no tenant {of[:60]!r}", field="tenant", remedy="omit it")
    return None if of == "*" else of


def described(row: Row) -> Row:
    """Return an entry as interfaces show it."""
    return {"at": iso(row["at"]), **{name: row[name] for name in AuditEntry._fields}}
