"""Sessions: whether a channel that holds one can send now, and what else such a channel can be asked."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable


class SessionStatus(StrEnum):
    """The state of a session."""

    CONNECTED = "connected"
    RECONNECTING = "reconnecting"  # it mends itself: wait
    LOGGED_OUT = "logged_out"  # a person is needed

    @property
    def words(self) -> str:
        """As people say it."""
        return self.value.replace("_", " ")


class SessionCheck(NamedTuple):
    """A session's state, and what the other side calls it."""

    link: SessionStatus
    why: str


@runtime_checkable
class HasSession(Protocol):
    """What a channel fills that holds a session: nothing is started on it while that is not connected."""

    async def status(self) -> SessionCheck:
        """The session's state, soon; a server that does not answer is reconnecting."""


@runtime_checkable
class Reconnects(Protocol):
    """What it may fill besides: it can ask for the session to come back."""

    async def reconnect(self) -> None:
        """Ask once, and do not wait for it. Asked of one that is logged out it must change nothing."""


@runtime_checkable
class HasQrCode(Protocol):
    """What it may fill besides: a phone is linked to it by scanning a code."""

    async def code(self) -> str | None:
        """The text of the code to scan now; None when there is none to scan."""
