"""The ports of sources: polled page by page, or called by webhook. Sources parse and write nothing."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from ...store.port import Step
from ..domain import IncomingMessage
from .settings import SourceSettings


class SourceEntry(NamedTuple):
    """A message and the cursor after it."""

    incoming: IncomingMessage
    cursor: str | None = None  # None: unchanged
    steps: Sequence[Step] = ()  # what it teaches about its sender


class SourcePage(NamedTuple):
    """One page, oldest first."""

    entries: Sequence[SourceEntry] = ()
    cursor: str | None = None  # after the whole page; None: unchanged
    more: bool = False  # the platform has more pages
    holes: Sequence[str] = ()  # descriptions of gaps


class SourceUnavailable(Exception):
    """The platform returned no page. `wait` is its Retry-After."""

    def __init__(self, reason: str, *, wait: timedelta | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class PolledSource(Protocol):
    """A source that is polled."""

    async def read(self, cursor: str | None, *, since: int) -> SourcePage:
        """Read the page after the cursor. Without one, start with the first message sent since `since`."""

    async def look_back(self) -> Sequence[IncomingMessage]:
        """Read the newest page again to find edits, deletions and missed messages; may return nothing."""

    def is_behind(self, id_: str, cursor: str) -> bool:
        """Return whether a message with this id should have been read before."""

    async def close(self) -> None:
        """Close all connections."""


class WebhookRequest(NamedTuple):
    """The parts of an HTTP request that sources may use."""

    headers: Mapping[str, str]  # by lowercase name
    query: Mapping[str, str]
    body: bytes


class UnverifiedWebhook(Exception):
    """The webhook has no valid signature or secret."""


def is_secret(given: str, settings: SourceSettings) -> bool:
    """Compare a value with all secrets of a source in constant time."""
    return bool(sum(hmac.compare_digest(given.encode(), secret.encode()) for secret in settings.secrets))
