"""What a source is: it is read page by page, or it calls. It understands a platform and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from ..domain import IncomingMessage


class SourceEntry(NamedTuple):
    """Something said, and where reading goes on behind it."""

    incoming: IncomingMessage
    cursor: str | None = None  # None: the cursor stays as it is


class SourcePage(NamedTuple):
    """One page, oldest first."""

    heard: Sequence[SourceEntry] = ()
    cursor: str | None = None  # behind all of it; None: where it was
    more: bool = False  # the platform has more than this
    holes: Sequence[str] = ()  # what is missing, in words


class SourceUnavailable(Exception):
    """The platform did not give what was asked for. `wait` is its own wish."""

    def __init__(self, reason: str, *, wait: timedelta | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class PolledSource(Protocol):
    """A source that is read."""

    async def read(self, cursor: str | None, *, since: int) -> SourcePage:
        """What follows the cursor. Without one: from the first message said at `since` or later."""

    async def look_back(self) -> Sequence[IncomingMessage]:
        """The newest once more, to notice what was edited, deleted or missed; nothing where ids tell it."""

    def is_behind(self, id_: str, cursor: str) -> bool:
        """Whether a message with this id must have been read already."""

    async def close(self) -> None:
        """Let go of connections."""


class WebhookRequest(NamedTuple):
    """A request that came in, as far as sources may look at it."""

    headers: Mapping[str, str]  # by names in small letters
    query: Mapping[str, str]
    body: bytes


class UnverifiedWebhook(Exception):
    """Nothing shows that the platform sent this; the text says what is missing."""
