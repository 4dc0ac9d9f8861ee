"""Keys: who may call. None configured (allowed on loopback only) means everybody on this machine.

Only hashes are kept, every key is compared, and the time that takes does not tell which one was near. A
browser shows a key once and gets a session: an end time signed with a secret derived from that key, so a
session ends by itself, survives a restart, and dies with its key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.requests import cookie_parser

from ..kernel.clock import Clock
from ..model.time import HOUR

COOKIE = "tidings_session"
SESSION = 12 * HOUR


class _Key(NamedTuple):
    digest: bytes
    secret: bytes  # signs sessions


class Keys:
    """The configured keys, as far as they must be known."""

    def __init__(self, keys: Sequence[str], clock: Clock) -> None:
        self._clock = clock
        self._keys = [_Key(_digest(key), _digest(f"session of {key}")) for key in keys]

    @property
    def are_required(self) -> bool:
        """Whether callers must show one."""
        return bool(self._keys)

    def admit(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether these headers carry a key or a session."""
        if not self._keys:
            return True
        shown = headers.get(b"x-api-key") or _bearer(headers.get(b"authorization", b""))
        if shown is not None:
            return self._owner(shown.decode("latin-1")) is not None
        cookie = cookie_parser(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        return cookie is not None and self._is_session(cookie)

    def session(self, key: str) -> str | None:
        """A session for whoever shows this key; None for a wrong one."""
        owner = self._owner(key)
        return None if owner is None else _signed(owner, self._clock.wall() + SESSION)

    def _owner(self, key: str) -> _Key | None:
        digest, found = _digest(key), None
        for own in self._keys:  # all of them, always
            if hmac.compare_digest(digest, own.digest):
                found = own
        return found

    def _is_session(self, cookie: str) -> bool:
        until = cookie.partition(".")[0]
        if not until.isascii() or not until.isdigit() or len(until) > 18 or int(until) < self._clock.wall():
            return False
        expected = [_signed(own, int(until)) for own in self._keys]
        return sum(hmac.compare_digest(cookie.encode(), own.encode()) for own in expected) > 0


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _signed(key: _Key, until: int) -> str:
    return f"{until}.{hmac.new(key.secret, str(until).encode(), 'sha256').hexdigest()}"


def _bearer(header: bytes) -> bytes | None:
    scheme, _, key = header.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else None
