"""Credentials: what a request shows of itself. A key never comes in an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import cookie_parser

from ..access.authentication import SESSION_COOKIE


class RequestCredentials(NamedTuple):
    """A key, or the session of a browser."""

    key: str | None
    session: str | None


def read_credentials(headers: Mapping[bytes, bytes]) -> RequestCredentials:
    """What these headers carry; a key comes before a session."""
    key = headers.get(b"x-api-key") or _bearer(headers.get(b"authorization", b""))
    if key is not None:
        return RequestCredentials(key.decode("latin-1"), None)
    cookie = headers.get(b"cookie")
    return RequestCredentials(
        None, None if cookie is None else cookie_parser(cookie.decode("latin-1")).get(SESSION_COOKIE)
    )


def _bearer(header: bytes) -> bytes | None:
    scheme, _, key = header.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else None
