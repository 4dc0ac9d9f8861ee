"""Session status, and the protocols of channels that hold a session."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable


class SessionStatus(StrEnum):
    """The state of a session."""

    CONNECTED = "connected"
    RECONNECTING = "reconnecting"  # recovers automatically
    LOGGED_OUT = "logged_out"  # a person must link it again

    @property
    def words(self) -> str:
        """The status as words."""
        return self.value.replace("_", " ")


class SessionCheck(NamedTuple):
    """A session's status, and the provider's name for it."""

    link: SessionStatus
    why: str
    is_down: bool = False  # stopped, failed or unreachable: more than a reconnect
    restart: bool = False  # only a restart can help
    rejected: bool = False  # the server rejects our credentials


@runtime_checkable
class HasSession(Protocol):
    """Protocol of channels with a session; nothing is sent while it is not connected."""

    async def status(self) -> SessionCheck:
        """Check the session quickly; a server that does not answer counts as down."""


@runtime_checkable
class Reconnects(Protocol):
    """Optional protocol of sessions that can be reconnected."""

    async def reconnect(self, *, restart: bool = False) -> None:
        """Request a reconnect without waiting, or a restart; a logged-out session stays logged out."""


class SessionStorage(NamedTuple):
    """Where a server keeps its sessions."""

    place: str
    is_database: bool


@runtime_checkable
class HasSessionStorage(Protocol):
    """Optional protocol of sessions that must be stored to survive a restart of their server."""

    session_dir: Path | None  # the server's folder, as this machine sees it

    async def storage(self) -> SessionStorage | None:
        """Where the server keeps its sessions; None if it does not say."""


@runtime_checkable
class KnowsNumbers(Protocol):
    """Optional protocol of sessions that know the phone numbers behind linked ids (lids)."""

    async def number_of(self, id_: str) -> str | None:
        """The chat id of the number; None if it is hidden."""


@runtime_checkable
class HasQrCode(Protocol):
    """Optional protocol of sessions that a phone links to by scanning a QR code."""

    async def code(self) -> str | None:
        """The text of the current code; None if there is none."""
