"""The roster: the allowed senders by platform id, with squad and role.

Source '' stands for every source; an entry for one source has precedence. Senders are never identified by
display name, which anyone can change. Every change is logged in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from ..inputs.fields import Field, check_fields
from ..inputs.pagination import Page, decode_cursor, decode_position, encode_cursor, page_size
from ..model.errors import Invalid, NotFound, TidingsError
from ..model.time import iso
from ..store.port import Row, Step, Store
from .domain import Speaker
from .sources.settings import SourceSettings

EVERYWHERE = ""
ROLES = ("member", "officer", "admin")
CHUNK = 500  # rows per transaction of an import
LONGEST = 200
LONGEST_SQUAD = 64

FIELDS: Mapping[str, Field] = {
    "sender": Field("string", "platform id of the person", "1001", required=True, also="integer"),
    "name": Field("string", "display name", "Ada", required=True),
    "squad": Field("string", "squad of the person", "42", required=True, also="integer"),
    "role": Field("string", f"{', '.join(ROLES)}; default: member", "member"),
    "source": Field("string", "limit the entry to this source; default: all sources", "crew"),
}

Numbered = tuple[int, dict[str, Any] | TidingsError]


class RosterEntry(NamedTuple):
    """One person on the roster."""

    sender: str
    name: str
    squad: str
    role: str = ROLES[0]
    source: str = EVERYWHERE


class RosterImportProgress(NamedTuple):
    """The results of one chunk of an import: counts, and rejected rows by number."""

    counts: Mapping[str, int]
    bad: Sequence[tuple[int, TidingsError]]


class Roster:
    """Looks up, changes, imports and lists roster entries."""

    def __init__(self, store: Store, sources: Collection[str] = ()) -> None:
        self._store = store
        self._sources = tuple(sources)

    async def speakers(self, source: SourceSettings, senders: Sequence[str]) -> dict[str, Speaker]:
        """Return the speakers of these sender ids on a source; unknown senders are omitted."""
        wanted = orjson.dumps(sorted(set(senders))).decode()
        rows = await self._store.read("roster_of", tenant=source.tenant, senders=wanted)
        rows = [row for row in rows if row["source"] in (EVERYWHERE, source.name)]
        rows.sort(key=lambda row: str(row["source"]))  # the entry for this source comes last and wins
        return {row["sender"]: speaker_of(row) for row in rows}

    async def called(self, source: SourceSettings, name: str) -> tuple[Speaker, ...]:
        """Find people by name, ignoring case; at most two, which is enough to detect ambiguity."""
        rows = await self._store.read("roster_named", tenant=source.tenant, called=name, source=source.name)
        return tuple({row["sender"]: speaker_of(row) for row in rows}.values())

    async def put(self, body: object, *, tenant: str = "default") -> tuple[Row, str]:
        """Add or update an entry; returns it with `created`, `changed` or `unchanged`."""
        person = read_person(body, self._sources)
        what = (await self._keep([person], tenant))[0]
        return _shown(person._asdict()), what

    async def remove(self, sender: str, source: str | None = None, *, tenant: str = "default") -> Row:
        """Remove an entry and return it; earlier messages stay. Raises NotFound."""
        which = {"tenant": tenant, "sender": sender, "source": source or EVERYWHERE}
        known = await self._store.read("roster_of", tenant=tenant, senders=orjson.dumps([sender]).decode())
        found = next((row for row in known if row["source"] == which["source"]), None)
        if found is None:
            where = ", ".join(row["source"] or "all sources (omit the source)" for row in known)
            remedy = f"{sender[:60]!r} has entries for: {where}" if known else "see: tidings roster list"
            raise NotFound(f"{sender[:60]!r} is not on the roster for this source", field="sender", remedy=remedy)
        line = _line(RosterEntry(sender, found["name"], found["squad"], found["role"], found["source"]), "removed")
        steps = [Step("roster_drop", which), _noted(tenant, [line])._replace(only_if=0)]
        await self._store.write(steps)
        return _shown(found)

    async def page(
        self, *, squad: str | None = None, limit: int = 50, after: str | None = None, tenant: str = "default"
    ) -> Page:
        """List entries by name."""
        name, sender, source = decode_cursor(after, 3)
        rows = await self._store.read(
            "roster_page",
            tenant=tenant,
            after_name=name,
            after_sender=sender,
            after_source=source,
            squad=squad,
            limit=page_size(limit),
        )
        keys = [rows[-1][key] for key in ("name", "sender", "source")] if len(rows) == limit else None
        return Page([_shown(row) for row in rows], encode_cursor(*keys) if keys else None)

    async def log(
        self, *, sender: str | None = None, limit: int = 50, after: str | None = None, tenant: str = "default"
    ) -> Page:
        """List roster changes and impersonations, newest first."""
        rows = await self._store.read(
            "roster_log_page", tenant=tenant, sender=sender, before=decode_position(after), limit=page_size(limit)
        )
        items = [
            {name: row[name] or None for name in ("source", "sender", "what", "detail")} | {"at": iso(row["at"])}
            for row in rows
        ]
        return Page(items, str(rows[-1]["n"]) if len(rows) == limit else None)

    async def take(
        self, rows: AsyncIterator[Numbered], *, dry_run: bool = False, tenant: str = "default"
    ) -> AsyncIterator[RosterImportProgress]:
        """Import rows, one transaction per chunk; invalid rows are reported and skipped."""
        chunk: list[Numbered] = []
        async for row in rows:
            chunk.append(row)
            if len(chunk) == CHUNK:
                yield await self._take(chunk, tenant, dry_run=dry_run)
                chunk = []
        if chunk:
            yield await self._take(chunk, tenant, dry_run=dry_run)

    async def _take(self, chunk: Sequence[Numbered], tenant: str, *, dry_run: bool) -> RosterImportProgress:
        people: dict[tuple[str, str], RosterEntry] = {}
        bad: list[tuple[int, TidingsError]] = []
        for number, row in chunk:
            try:
                if isinstance(row, TidingsError):
                    raise row
                person = read_person({k: v for k, v in row.items() if v not in (None, "")}, self._sources)
            except TidingsError as error:
                bad.append((number, error))
            else:
                people[person.sender, person.source] = person  # the last one wins
        counts = Counter(await self._keep(list(people.values()), tenant, dry_run=dry_run))
        repeated = len(chunk) - len(bad) - len(people)
        return RosterImportProgress({**counts, "unchanged": counts["unchanged"] + repeated, "refused": len(bad)}, bad)

    async def _keep(self, people: Sequence[RosterEntry], tenant: str, *, dry_run: bool = False) -> list[str]:
        """Write new and changed entries; returns `created`, `changed` or `unchanged` for each."""
        senders = orjson.dumps(sorted({person.sender for person in people})).decode()
        rows = await self._store.read("roster_of", tenant=tenant, senders=senders)
        known = {(row["sender"], row["source"]): row for row in rows}
        whats = [_compared(person, known.get((person.sender, person.source))) for person in people]
        moved = [(person, what) for person, what in zip(people, whats, strict=True) if what != "unchanged"]
        if moved and not dry_run:
            put = orjson.dumps([person._asdict() for person, _ in moved]).decode()
            words = {"created": "added", "changed": "changed"}
            lines = [_line(person, words[what]) for person, what in moved]
            await self._store.write([Step("roster_put", {"tenant": tenant, "rows": put}), _noted(tenant, lines)])
        return whats


def read_person(body: object, sources: Collection[str] = ()) -> RosterEntry:
    """Validate a request body as an entry; raises Invalid."""
    said = check_fields(body, FIELDS)
    given = {name: "" if value is None else str(value).strip() for name, value in said.items()}
    for name, longest in (("sender", LONGEST), ("name", LONGEST), ("squad", LONGEST_SQUAD)):
        if not given[name] or len(given[name]) > longest or not given[name].isprintable():
            remedy = f"use 1 to {longest} printable characters"
            raise Invalid(f"{name} is empty, too long or not printable", field=name, remedy=remedy)
    role = (given.get("role") or ROLES[0]).lower()
    if role not in ROLES:
        raise Invalid(f"unknown role {role[:40]!r}", field="role", remedy=f"use one of: {', '.join(ROLES)}")
    source = given.get("source") or EVERYWHERE
    if source and sources and source not in sources:
        known = ", ".join(sources)
        raise Invalid(f"unknown source {source[:60]!r}", field="source", remedy=f"use one of: {known}")
    return RosterEntry(given["sender"], given["name"], given["squad"], role, source)


def speaker_of(row: Mapping[str, Any]) -> Speaker:
    """Return the speaker of a roster row."""
    return Speaker(row["sender"], row["name"], row["squad"], row["role"])


def _compared(person: RosterEntry, row: Row | None) -> str:
    if row is None:
        return "created"
    same = (person.name, person.squad, person.role) == (row["name"], row["squad"], row["role"])
    return "unchanged" if same else "changed"


def _line(person: RosterEntry, what: str) -> Row:
    detail = f"{person.name}, squad {person.squad}, {person.role}"
    return {"source": person.source, "sender": person.sender, "what": what, "detail": detail}


def _noted(tenant: str, lines: Sequence[Row]) -> Step:
    return Step("roster_note", {"tenant": tenant, "rows": orjson.dumps(lines).decode()})


def _shown(row: Mapping[str, Any]) -> Row:
    names = ("sender", "name", "squad", "role")
    return {**{name: row[name] for name in names}, "source": row["source"] or None}
