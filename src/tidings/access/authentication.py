"""Authentication: API keys, browser sessions (sign-in, sign-out), and no-key mode.

Keys in the settings are admin keys of the tenant `default`. In no-key mode (on loopback only) every local
caller may do everything. It ends with the first key, in the settings or in the database, for good: revoking,
expiring or removing keys does not bring it back. Lookups are cached for one second, so a revoked key stops
working everywhere within one second.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from ..kernel.clock import Clock
from ..model.errors import TidingsError
from ..model.time import HOUR, MINUTE
from ..store.port import Row, Step, Store
from .api_keys import digest, owner_of, prefix_of
from .caller import THIS_MACHINE, Caller
from .permissions import READ

SESSION_COOKIE = "tidings_session"
SESSION_LIFETIME = 12 * HOUR
CACHE_TTL = 1.0  # seconds
STREAM_CACHE_TTL = 0.4  # live streams check every 0.5 s: together less than one second
_MAX_CACHED = 10_000
_NONE = digest("")  # compared if the key is unknown, for constant time

Found = TypeVar("Found")


class Authenticator:
    """Identifies callers. Uses the database's time."""

    def __init__(self, store: Store, clock: Clock, configured: Sequence[str] = (), *, is_local: bool = True) -> None:
        """`configured` are the keys of the settings; `is_local` allows no-key mode."""
        self._is_local = is_local
        self._store = store
        self._clock = clock
        self._configured = [digest(key) for key in configured]
        self._cache: dict[tuple[str, str], tuple[float, object]] = {}
        self._touched: dict[str, float] = {}

    async def caller(self, key: str | None, session: str | None, *, within: float = CACHE_TTL) -> Caller | None:
        """Return the caller of a key or session, or None. `within` is the maximum age of cached rows."""
        if key is not None:
            found = await self.by_key(key, within=within)
            if found is not None or prefix_of(key) is not None:
                return found
        elif session and (found := await self._by_session(session, within)) is not None:
            return found
        return THIS_MACHINE if await self.is_open(within=within) else None

    async def is_still_valid(self, key: str | None, session: str | None) -> bool:
        """Return whether the credentials of a stream are still valid; True if the database is unavailable."""
        try:
            return await self.caller(key, session, within=STREAM_CACHE_TTL) is not None
        except TidingsError:
            return True

    async def is_open(self, *, within: float = CACHE_TTL) -> bool:
        """Return whether no-key mode is active: there has never been a key."""
        if self._configured or not self._is_local:
            return False
        return not await self._cached("any", "", self._read_any, within)

    async def has_admin(self) -> bool:
        """Return whether the database has an admin key of the tenant default."""
        return bool(await self._store.read("access_key_admin"))

    async def remember_configured(self) -> None:
        """Record that keys were configured, so that no-key mode does not return after their removal."""
        if self._configured:
            await self._store.write([Step("access_configured", {})])

    async def by_key(self, key: str, *, within: float = CACHE_TTL) -> Caller | None:
        """Return the caller of a valid key, otherwise None."""
        shown = digest(key)
        if self._is_configured(shown):
            return Caller(_mark(shown))
        prefix = prefix_of(key)
        row = None
        if prefix is not None:
            row = await self._cached("key", prefix, lambda: self._read_key(prefix), within)
        if not _is_valid(shown, row, self._clock.now()):
            return None
        assert row is not None
        await self._touch(row)
        return owner_of(row)

    async def sign_in(self, key: str, origin: str) -> tuple[str, Caller] | None:
        """Create a session; None for a wrong key or one without the permission to read."""
        caller = await self.by_key(key)
        if caller is None or not caller.may(READ):
            return None
        token = secrets.token_urlsafe(32)
        owner = caller.key or _mark(digest(key))
        row = {"digest": digest(token), "owner": owner, "length": SESSION_LIFETIME, "origin": origin[:100]}
        await self._store.write([Step("session_add", row)])
        return token, caller

    async def sign_out(self, token: str) -> None:
        """End a session."""
        await self._store.write([Step("session_drop", {"digest": digest(token)})])
        self.forget()

    def forget(self) -> None:
        """Clear the cache after a key was changed."""
        self._cache.clear()

    async def _by_session(self, token: str, within: float) -> Caller | None:
        row = await self._cached("session", digest(token), lambda: self._read_session(digest(token)), within)
        now = self._clock.now()
        if row is None or row["session_expires_at"] <= now:
            return None
        if row["id"] is None:
            marks = [_mark(own) for own in self._configured]
            return Caller(row["owner"]) if row["owner"] in marks else None
        if row["revoked_at"] is not None or (row["expires_at"] or now + 1) <= now:
            return None
        await self._touch(row)
        return owner_of(row)

    def _is_configured(self, shown: str) -> bool:
        """Compare with all keys, for constant time."""
        return sum(hmac.compare_digest(shown, own) for own in self._configured) > 0

    async def _touch(self, row: Row) -> None:
        """Record the last use, at most once per minute; errors are ignored."""
        now = self._clock.monotonic()
        if now - self._touched.get(row["id"], -math.inf) < 60:
            return
        self._touched[row["id"]] = now
        with contextlib.suppress(TidingsError):
            await self._store.write([Step("access_key_seen", {"id": row["id"], "every": MINUTE})])

    async def _cached(self, what: str, name: str, read: Callable[[], Awaitable[Found]], within: float) -> Found:
        """Return the cached value if it is young enough, otherwise read it."""
        now, key = self._clock.monotonic(), (what, name)
        known = self._cache.get(key)
        if known is not None and now - known[0] < within:
            return known[1]  # type: ignore[return-value]
        found = await read()
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[key] = (now, found)
        return found

    async def _read_any(self) -> bool:
        return bool(await self._store.read("access_key_any"))

    async def _read_key(self, prefix: str) -> Row | None:
        rows = await self._store.read("access_key_known", prefix=prefix)
        return rows[0] if rows else None

    async def _read_session(self, shown: str) -> Row | None:
        rows = await self._store.read("session_find", digest=shown)
        return rows[0] if rows else None


def _is_valid(shown: str, row: Mapping[str, object] | None, now: int) -> bool:
    """Check a digest against the current secret and, within its overlap, the previous one; constant time."""
    row = row or {"digest": _NONE, "old_digest": None, "old_until": None, "revoked_at": 0, "expires_at": None}
    is_new = hmac.compare_digest(shown, str(row["digest"]))
    is_old = hmac.compare_digest(shown, str(row["old_digest"] or _NONE))
    old_until, expires_at = row["old_until"], row["expires_at"]
    is_old = is_old and isinstance(old_until, int) and now < old_until
    is_over = isinstance(expires_at, int) and expires_at <= now
    return (is_new or is_old) and row["revoked_at"] is None and not is_over


def _mark(shown: str) -> str:
    """Return a name for a key of the settings that reveals nothing about it."""
    return f"settings:{digest(shown)[:8]}"
