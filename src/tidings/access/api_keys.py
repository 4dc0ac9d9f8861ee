"""API keys: create, list, rotate with an overlap, revoke. A secret is shown once; only its hash is stored.

A key is `tdk_PREFIX_SECRET`. The prefix identifies it. The secret has 256 random bits, so a plain SHA-256 is
as safe as a slow password hash. Each change and its audit entry share a transaction.

Two rules prevent privilege escalation and lock-out, for every interface: a key never grants, rotates or
revokes a key with more permissions than its own, and the last admin key is never revoked.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import orjson

from ..inputs.fields import Field, check_fields
from ..inputs.pagination import Page, page_size
from ..kernel.clock import Clock
from ..model import durations
from ..model.errors import Conflict, Forbidden, Invalid, NotFound
from ..model.time import iso, micros
from ..store.port import Row, Step, Store
from . import audit
from .caller import NO_KEY_NAMES, RESERVED_NAMES, Caller, current_caller
from .permissions import AREAS, DEFAULT_TENANT, Role

KEY_MARKER = "tdk_"
OVERLAP = timedelta(hours=24)  # for which the previous secret stays valid
MAX_OVERLAP = timedelta(days=30)
MAX_LIFETIME = timedelta(days=3650)
MAX_RATE = 100_000
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(rf"{KEY_MARKER}([{_ALPHABET}]{{8}})_[\w-]{{43}}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}")
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

FIELDS: Mapping[str, Field] = {
    "name": Field("string", "name of the key, shown in the audit log", "billing", required=True),
    "role": Field("string", "admin, operator, sender, viewer or metrics", "sender", required=True),
    "tenant": Field("string", "tenant of the key; only keys of the tenant default may name another", "default"),
    "scopes": Field("array", "areas that the key may use; default: all areas of its role", ["messages"]),
    "rate": Field("integer", "calls per second over all processes; default: no limit", 20),
    "expires_in": Field("string", "lifetime; default: until it is revoked", "90d"),
}
ROTATE_FIELDS: Mapping[str, Field] = {
    "overlap": Field("string", "how long the previous secret stays valid; at most 30d", "24h")
}


def new_secret() -> tuple[str, str]:
    """Return the prefix of a new key and the key itself."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return prefix, _whole(prefix)


def prefix_of(key: str) -> str | None:
    """Return the prefix of a key, or None if the text does not look like a key."""
    found = _FORM.fullmatch(key)
    return None if found is None else found[1]


def digest(text: str) -> str:
    """Return the hash of a secret, as it is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def owner_of(row: Row) -> Caller:
    """Return the caller that a key authenticates."""
    scopes = frozenset(orjson.loads(row["scopes"]))
    expires_at = row["expires_at"]
    return Caller(row["name"], Role(row["role"]), row["tenant"], row["id"], scopes, row["rate"], expires_at=expires_at)


class ApiKeys:
    """The operations on API keys."""

    def __init__(
        self, store: Store, clock: Clock, changed: Callable[[], None] = lambda: None, *, has_configured: bool = False
    ) -> None:
        """`changed` is called after a change, to clear caches.

        `has_configured`: the settings have a key, so no admin key of the database is the last one.
        """
        self._store = store
        self._clock = clock
        self._changed = changed
        self._has_configured = has_configured

    async def create(self, body: object, *, tenant: str = DEFAULT_TENANT) -> Row:
        """Create a key and return it with its secret, which is not shown again."""
        given = check_fields(body, FIELDS)
        prefix, whole = new_secret()
        id_, name = self._clock.new_id(), _name(given["name"])
        row = {
            "id": id_,
            "tenant": _tenant(given.get("tenant"), tenant),
            "name": name,
            "prefix": prefix,
            "digest": digest(whole),
            "role": _role(given["role"]),
            "scopes": orjson.dumps(_scopes(given.get("scopes") or [])).decode(),
            "rate": _rate(given.get("rate")),
            "created_by": current_caller().who,
            "expires_at": self._end(given.get("expires_in")),
        }
        _check_grant(owner_of(row))
        steps = [Step("access_key_add", row), self._entry("keys.create", id_, f"{row['role']} {name}")]
        if not (await self._store.write(steps))[0]:
            raise Conflict(
                f"a key named {name!r} already exists",
                field="name",
                remedy="use another name, or rotate or revoke that key",
            )
        self._changed()
        return {**await self.show(id_, tenant=tenant), "key": whole}

    async def page(
        self, *, of: str | None = None, limit: int = 50, after: str | None = None, tenant: str = DEFAULT_TENANT
    ) -> Page:
        """List keys, newest first, without their secrets; `of` is another tenant, or * for all."""
        which = audit.visible_tenant(of, tenant)
        rows = await self._store.read("access_key_page", tenant=which, before=after, limit=page_size(limit))
        items = [described(row, self._clock.now()) for row in rows]
        return Page(items, rows[-1]["id"] if len(rows) == limit else None)

    async def show(self, id_: str, *, tenant: str = DEFAULT_TENANT) -> Row:
        """Show one key without its secret."""
        return described(await self._find(id_, tenant), self._clock.now())

    async def rotate(self, id_: str, *, overlap: str | timedelta | None = None, tenant: str = DEFAULT_TENANT) -> Row:
        """Replace the secret and end all sessions; the previous secret stays valid for the overlap."""
        row, length = await self._find(id_, tenant), _overlap(overlap)
        if current_caller().lacks(owner_of(row)) is not None:
            raise _may_do_more(row["name"])
        whole = _whole(row["prefix"])
        change = {"id": row["id"], "digest": digest(whole), "overlap": micros(length)}
        sessions = Step("session_drop_of", {"owner": row["id"]})
        if not await self._change([Step("access_key_rotate", change)], "keys.rotate", row, sessions):
            raise _was_revoked(row["name"])
        return {**await self.show(row["id"], tenant=tenant), "key": whole}

    async def revoke(self, id_: str, *, tenant: str = DEFAULT_TENANT) -> Row:
        """Revoke a key and end its sessions. Raises Conflict for the last admin key."""
        row = await self._find(id_, tenant)
        if current_caller().lacks(owner_of(row)) in ("role", "tenant", "scopes"):
            raise _may_do_more(row["name"])
        step = Step("access_key_revoke", {"id": row["id"], "has_other": self._has_configured})
        sessions = Step("session_drop_of", {"owner": row["id"]})
        if not await self._change([Step("access_lock", {}), step], "keys.revoke", row, sessions):
            if (await self._find(id_, tenant))["revoked_at"] is not None:
                raise _was_revoked(row["name"])
            raise Conflict(
                f"{row['name']!r} is the last admin key",
                field="id",
                remedy="create another first: tidings keys create NAME --role admin; or rotate this one",
            )
        return await self.show(row["id"], tenant=tenant)

    async def _change(self, steps: list[Step], action: str, row: Row, *also: Step) -> bool:
        """Write the steps; if the last one changed a row, also write the rest and return True."""
        last = len(steps) - 1
        rest = [self._entry(action, row["id"], row["name"]), *also]
        done = await self._store.write([*steps, *(one._replace(only_if=last) for one in rest)])
        self._changed()
        return bool(done[last])

    async def _find(self, id_: str, tenant: str) -> Row:
        """Find a key of the tenant; the tenant default finds every key."""
        of = None if tenant == DEFAULT_TENANT else tenant
        rows = await self._store.read("access_key_find", id=id_, tenant=of)
        if not rows:
            raise NotFound(f"there is no key {id_[:60]!r}", field="id", remedy="see: tidings keys list")
        return rows[0]

    def _entry(self, action: str, id_: str, detail: str) -> Step:
        entry = audit.audit_entry(current_caller(), action, target=id_, detail=detail)
        return audit.step([entry])._replace(only_if=0)

    def _end(self, text: str | None) -> int | None:
        if text is None:
            return None
        lifetime = _duration(text, "expires_in")
        if lifetime > MAX_LIFETIME:
            raise Invalid("expires_in is too long", field="expires_in", remedy="use at most 3650d, or omit it")
        return self._clock.now() + micros(lifetime)


def _check_grant(wanted: Caller) -> None:
    """Raise Forbidden unless the current caller may create this key."""
    giver = current_caller()
    if giver.who in NO_KEY_NAMES and not _runs_engine(wanted):
        raise Forbidden(
            "the first key must be an admin key, because it ends no-key mode",
            field="role",
            remedy="first create an admin key of the tenant default without scopes",
        )
    if (field := giver.lacks(wanted)) is not None:
        remedy = "request no more than your own key has, or use a key with more permissions"
        raise Forbidden("a key cannot grant more than it has", field=field, remedy=remedy)


def _runs_engine(owner: Caller) -> bool:
    return owner.role is Role.ADMIN and owner.tenant == DEFAULT_TENANT and not owner.scopes


def _may_do_more(name: str) -> Forbidden:
    return Forbidden(f"the key {name!r} has more permissions than yours", field="id", remedy="use a key with as many")


def _was_revoked(name: str) -> Conflict:
    return Conflict(f"the key {name!r} was revoked", field="id", remedy="create a new one: tidings keys create")


def _whole(prefix: str) -> str:
    return f"{KEY_MARKER}{prefix}_{secrets.token_urlsafe(32)}"


def _name(text: str) -> str:
    if not _NAME.fullmatch(text) or text in RESERVED_NAMES:
        remedy = "use up to 63 letters, digits, spaces and . _ @ -"
        raise Invalid(f"invalid name {text[:80]!r}", field="name", remedy=remedy)
    return text


def _tenant(text: str | None, own: str) -> str:
    """Return the tenant of a new key: the caller's own, or any if that is the tenant default."""
    if text is None or text == own:
        return own
    if own != DEFAULT_TENANT:
        raise Invalid("a key can only create keys of its own tenant", field="tenant", remedy="omit it")
    if not _TENANT.fullmatch(text):
        remedy = "use up to 63 lowercase letters, digits, - and _"
        raise Invalid(f"invalid tenant {text[:80]!r}", field="tenant", remedy=remedy)
    return text


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        remedy = f"use one of: {', '.join(Role)}"
        raise Invalid(f"unknown role {text[:60]!r}", field="role", remedy=remedy) from None


def _scopes(given: list[Any]) -> list[str]:
    unknown = next((one for one in given if one not in AREAS), None)
    if unknown is not None:
        remedy = f"use some of: {', '.join(AREAS)}"
        raise Invalid(f"unknown area {str(unknown)[:60]!r}", field="scopes", remedy=remedy)
    return sorted(set(given))


def _rate(number: int | None) -> int | None:
    if number is not None and not 1 <= number <= MAX_RATE:
        raise Invalid(f"rate is {number}", field="rate", remedy=f"use 1 to {MAX_RATE:,} calls per second")
    return number


def _overlap(given: str | timedelta | None) -> timedelta:
    overlap = OVERLAP if given is None else given
    if isinstance(overlap, str):
        overlap = timedelta(0) if overlap.strip() in ("0", "0s") else _duration(overlap, "overlap")
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise Invalid("overlap is too long", field="overlap", remedy="use at most 30d, or 0 for none")
    return overlap


def _duration(text: str, field: str) -> timedelta:
    try:
        found = durations.parse(text)
    except ValueError as error:
        remedy = "use a duration such as 12h, 30d or 52w"
        raise Invalid(f"{field} is {text[:60]!r}: {error}", field=field, remedy=remedy) from None
    if not found:
        raise Invalid(f"{field} must be greater than zero", field=field, remedy="use a duration such as 12h")
    return found


def described(row: Row, now: int) -> Row:
    """Return a key as interfaces show it."""
    return {
        "id": row["id"],
        "name": row["name"],
        "tenant": row["tenant"],
        "prefix": f"{KEY_MARKER}{row['prefix']}",
        "role": row["role"],
        "scopes": orjson.loads(row["scopes"]),
        "rate": row["rate"],
        "state": _state(row, now),
        "created_at": iso(row["created_at"]),
        "created_by": row["created_by"],
        "expires_at": iso(row["expires_at"]),
        "rotated_at": iso(row["rotated_at"]),
        "old_until": iso(row["old_until"]) if (row["old_until"] or 0) > now else None,
        "revoked_at": iso(row["revoked_at"]),
        "last_used_at": iso(row["last_used_at"]),
    }


def _state(row: Row, now: int) -> str:
    if row["revoked_at"] is not None:
        return "revoked"
    return "expired" if row["expires_at"] is not None and row["expires_at"] <= now else "active"
