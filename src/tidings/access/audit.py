"""The audit trail: who did what, when, to what, from where. Lines are only ever added, and forgotten by age.

Lines form a chain: each has the SHA-256 of its content and of the hash before it (`audit_chain`), so a line
that is changed or deleted breaks it. Retention prunes the oldest lines and moves the beginning of the chain.

A line never holds a body, a query or a secret: what was done, its target, and how it ended.

    keys              in the transaction of the change
    other changes     right after the change, before the caller is told; a crash in between loses the line
    made messages     after the caller is told, in batches (`note_soon`): the message itself is the record
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

LONGEST = 200
PAGE = 1000
PRUNE = ("audit_checkpoint", "audit_prune")  # in one transaction, in this order
_SECRET = re.compile(r"tdk_([0-9a-z]{8})_[\w-]+")
_log = logging.getLogger("tidings.access")


class AuditEntry(NamedTuple):
    """One thing that was done or tried."""

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
    """A line about this caller, with secrets and control characters taken out."""
    fields: dict[str, Any] = {
        name: sanitize(value) if isinstance(value, str) else value for name, value in more.items()
    }
    return AuditEntry(
        caller.tenant, caller.who, caller.key, action, sanitize(target), sanitize(caller.origin), **fields
    )


def sanitize(text: str | None) -> str | None:
    """A text fit for the trail: short, printable, with the public part of a key only."""
    if text is None:
        return None
    masked = _SECRET.sub(r"tdk_\1_***", text)[:LONGEST]
    return masked if masked.isprintable() else "".join(c if c.isprintable() else " " for c in masked)


def step(lines: Sequence[AuditEntry]) -> Step:
    """Lines for a transaction of somebody's."""
    rows = [{**one._asdict(), "digest": digest(one)} for one in lines]
    return Step("audit_add", {"rows": orjson.dumps(rows).decode()})


def digest(content: Sequence[Any]) -> str:
    """The hash of a line's content, its fields in their order."""
    return hashlib.sha256(orjson.dumps(list(content))).hexdigest()


class AuditLog:
    """Writes the trail and reads it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[AuditEntry] = []
        self._writing: asyncio.Task[None] | None = None

    async def note(self, entry: AuditEntry) -> None:
        """Write a line down. What was done is done: a line that cannot be written is logged instead."""
        try:
            await self._store.write([step([entry])])
        except TidingsError as error:
            _log.error("the audit line %s could not be written: %s", entry, error.problem)

    def note_soon(self, entry: AuditEntry) -> None:
        """Write a line down without waiting; what comes while one batch is written is the next."""
        self._waiting.append(entry)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Write what still waits."""
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
        """What was done, newest first; `of` is another tenant, or * for all, for those who run the engine."""
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
                _log.error("%d audit lines could not be written: %s", len(batch), error.problem)


def visible_tenant(of: str | None, tenant: str) -> str | None:
    """The tenant that is looked at, None for all; those of another tenant see their own only."""
    if of is None or of == tenant:
        return tenant
    if tenant != DEFAULT_TENANT:
        raise NotFound(f"there is no tenant {of[:60]!r}", field="tenant", remedy="leave it out")
    return None if of == "*" else of


def described(row: Row) -> Row:
    """A line as people see it."""
    return {"at": iso(row["at"]), **{name: row[name] for name in AuditEntry._fields}}
