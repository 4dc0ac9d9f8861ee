"""The door: who a request comes from. A key in a header, a session in a cookie, or this machine itself.

Keys of the settings are admins of the tenant `default`. As long as there is neither such a key nor an admin's
in the database, whoever is on this machine may do everything (on loopback only). What
was read is good for a second: so fast does a revoked key stop opening in every process.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import orjson

from ..kernel.clock import Clock
from ..model.errors import TidingsError
from ..model.time import HOUR, MINUTE
from ..store.port import Row, Step, Store
from .caller import THIS_MACHINE, Caller
from .keys import digest, prefix_of
from .rules import Role

COOKIE = "tidings_session"
SESSION = 12 * HOUR
FRESH = 1.0  # seconds for which what was read is good
_MOST_KNOWN = 10_000
_NONE = digest("")  # compared with where there is no key, so that this takes as long

Found = TypeVar("Found")


class Door:
    """Tells callers apart. Time is the database's."""

    def __init__(
        self, store: Store, clock: Clock, configured: Sequence[str] = (), *, is_local: bool = True
    ) -> None:
        """`configured` are the keys of the settings; without any, only a local door may stand open."""
        self._is_local = is_local
        self._store = store
        self._clock = clock
        self._configured = [digest(key) for key in configured]
        self._known: dict[tuple[str, str], tuple[float, object]] = {}
        self._seen: dict[str, float] = {}

    async def caller(self, key: str | None, session: str | None) -> Caller | None:
        """Whoever shows this key or this session; None is for nobody."""
        if key is not None:
            found = await self.by_key(key)
            if found is not None or prefix_of(key) is not None:
                return found
        elif session and (found := await self._by_session(session)) is not None:
            return found
        return THIS_MACHINE if await self.is_open() else None

    async def is_open(self) -> bool:
        """Whether no key is needed, because there is none that could be asked for."""
        if self._configured or not self._is_local:
            return False
        return not await self.has_admin()

    async def has_admin(self) -> bool:
        """Whether the database has a key that runs the engine."""
        return await self._fresh("admin", "", self._ask_admin)

    async def by_key(self, key: str) -> Caller | None:
        """The owner of a key, if it opens."""
        shown = digest(key)
        if self._is_configured(shown):
            return _configured(_mark(shown))
        prefix = prefix_of(key)
        row = None if prefix is None else await self._fresh("key", prefix, lambda: self._ask_key(prefix))
        if not _opens(shown, row, self._clock.now()):
            return None
        assert row is not None
        await self._touch(row)
        return _caller(row)

    async def sign_in(self, key: str, origin: str) -> tuple[str, Caller] | None:
        """A session for whoever shows this key; None for a wrong one."""
        caller = await self.by_key(key)
        if caller is None:
            return None
        token = secrets.token_urlsafe(32)
        owner = caller.key or _mark(digest(key))
        row = {"digest": digest(token), "owner": owner, "length": SESSION, "origin": origin[:100]}
        await self._store.write([Step("session_add", row)])
        return token, caller

    async def sign_out(self, token: str) -> None:
        """End a session."""
        await self._store.write([Step("session_drop", {"digest": digest(token)})])
        self.forget()

    def forget(self) -> None:
        """Read everything again: a key was changed here."""
        self._known.clear()

    async def _by_session(self, token: str) -> Caller | None:
        row = await self._fresh("session", digest(token), lambda: self._ask_session(digest(token)))
        now = self._clock.now()
        if row is None or row["expires_at"] <= now:
            return None
        if row["id"] is None:
            marks = [_mark(own) for own in self._configured]
            return _configured(row["owner"]) if row["owner"] in marks else None
        if row["revoked_at"] is not None or (row["key_expires_at"] or now + 1) <= now:
            return None
        await self._touch(row)
        return _caller(row)

    def _is_configured(self, shown: str) -> bool:
        """All of them are compared, always."""
        return sum(hmac.compare_digest(shown, own) for own in self._configured) > 0

    async def _touch(self, row: Row) -> None:
        """Remember that it was used, once a minute at the most. Failing that, it opens all the same."""
        now = self._clock.monotonic()
        if now - self._seen.get(row["id"], -math.inf) < 60:
            return
        self._seen[row["id"]] = now
        with contextlib.suppress(TidingsError):
            await self._store.write([Step("access_key_seen", {"id": row["id"], "every": MINUTE})])

    async def _fresh(self, what: str, name: str, ask: Callable[[], Awaitable[Found]]) -> Found:
        """What was read within the last second, or is read now."""
        now, key = self._clock.monotonic(), (what, name)
        known = self._known.get(key)
        if known is not None and now - known[0] < FRESH:
            return known[1]  # type: ignore[return-value]
        found = await ask()
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = (now, found)
        return found

    async def _ask_admin(self) -> bool:
        return bool(await self._store.read("access_key_admin"))

    async def _ask_key(self, prefix: str) -> Row | None:
        rows = await self._store.read("access_key_known", prefix=prefix)
        return rows[0] if rows else None

    async def _ask_session(self, shown: str) -> Row | None:
        rows = await self._store.read("session_find", digest=shown)
        return rows[0] if rows else None


def _opens(shown: str, row: Mapping[str, object] | None, now: int) -> bool:
    """Whether a secret is the key's present one, or the one before in its overlap. Compares both, always."""
    row = row or {"digest": _NONE, "old_digest": None, "old_until": None, "revoked_at": 0, "expires_at": None}
    is_new = hmac.compare_digest(shown, str(row["digest"]))
    is_old = hmac.compare_digest(shown, str(row["old_digest"] or _NONE))
    old_until, expires_at = row["old_until"], row["expires_at"]
    is_old = is_old and isinstance(old_until, int) and now < old_until
    is_over = isinstance(expires_at, int) and expires_at <= now
    return (is_new or is_old) and row["revoked_at"] is None and not is_over


def _caller(row: Row) -> Caller:
    scopes = frozenset(orjson.loads(row["scopes"]))
    return Caller(row["name"], Role(row["role"]), row["tenant"], row["id"], scopes, row["rate"])


def _configured(mark: str) -> Caller:
    return Caller(mark)


def _mark(shown: str) -> str:
    """A name for a key of the settings that gives nothing of it away."""
    return f"settings:{digest(shown)[:8]}"
