"""The door: who a request comes from. A key in a header, a session in a cookie, or this machine itself.

Keys of the settings are admins of the tenant `default`. In no-key mode (on loopback only) whoever is on this
machine may do everything. It ends with the first key, in the settings or in the database, and never comes
back: neither a revoked nor an expired nor a removed key opens it again. Keys are read again every second, so
a revoked key stops working in every process within a second.
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
FRESH = 1.0  # seconds for which what was read is good
STREAM_FRESH = 0.4  # the same for streams: with their check every 0.5 s it stays under a second
_MOST_KNOWN = 10_000
_NONE = digest("")  # compared with where there is no key, so that this takes as long

Found = TypeVar("Found")


class Authenticator:
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

    async def caller(self, key: str | None, session: str | None, *, within: float = FRESH) -> Caller | None:
        """Whoever shows this key or this session; None is for nobody. `within`: age of what was read."""
        if key is not None:
            found = await self.by_key(key, within=within)
            if found is not None or prefix_of(key) is not None:
                return found
        elif session and (found := await self._by_session(session, within)) is not None:
            return found
        return THIS_MACHINE if await self.is_open(within=within) else None

    async def is_still_valid(self, key: str | None, session: str | None) -> bool:
        """Whether what opened a stream still does; a database that does not answer ends none."""
        try:
            return await self.caller(key, session, within=STREAM_FRESH) is not None
        except TidingsError:
            return True

    async def is_open(self, *, within: float = FRESH) -> bool:
        """Whether no key is needed, because there has never been one."""
        if self._configured or not self._is_local:
            return False
        return not await self._fresh("any", "", self._ask_any, within)

    async def has_admin(self) -> bool:
        """Whether the database has a key that runs the engine."""
        return bool(await self._store.read("access_key_admin"))

    async def remember_configured(self) -> None:
        """Keep no-key mode closed after the keys of the settings are removed."""
        if self._configured:
            await self._store.write([Step("access_configured", {})])

    async def by_key(self, key: str, *, within: float = FRESH) -> Caller | None:
        """The owner of a key, if it opens."""
        shown = digest(key)
        if self._is_configured(shown):
            return _configured(_mark(shown))
        prefix = prefix_of(key)
        row = None
        if prefix is not None:
            row = await self._fresh("key", prefix, lambda: self._ask_key(prefix), within)
        if not _opens(shown, row, self._clock.now()):
            return None
        assert row is not None
        await self._touch(row)
        return owner_of(row)

    async def sign_in(self, key: str, origin: str) -> tuple[str, Caller] | None:
        """A session for whoever shows this key; None for a wrong one, or one that may see no page."""
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
        """Read everything again: a key was changed here."""
        self._known.clear()

    async def _by_session(self, token: str, within: float) -> Caller | None:
        row = await self._fresh("session", digest(token), lambda: self._ask_session(digest(token)), within)
        now = self._clock.now()
        if row is None or row["session_expires_at"] <= now:
            return None
        if row["id"] is None:
            marks = [_mark(own) for own in self._configured]
            return _configured(row["owner"]) if row["owner"] in marks else None
        if row["revoked_at"] is not None or (row["expires_at"] or now + 1) <= now:
            return None
        await self._touch(row)
        return owner_of(row)

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

    async def _fresh(self, what: str, name: str, ask: Callable[[], Awaitable[Found]], within: float) -> Found:
        """What was read within so many seconds, or is read now."""
        now, key = self._clock.monotonic(), (what, name)
        known = self._known.get(key)
        if known is not None and now - known[0] < within:
            return known[1]  # type: ignore[return-value]
        found = await ask()
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = (now, found)
        return found

    async def _ask_any(self) -> bool:
        return bool(await self._store.read("access_key_any"))

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


def _configured(mark: str) -> Caller:
    return Caller(mark)


def _mark(shown: str) -> str:
    """A name for a key of the settings that gives nothing of it away."""
    return f"settings:{digest(shown)[:8]}"
