"""Whether a channel that holds a session of its own can send now (E7)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Link(StrEnum):
    """The state of a session."""

    CONNECTED = "connected"
    RECONNECTING = "reconnecting"  # it mends itself: wait
    LOGGED_OUT = "logged out"  # a person is needed


class Connection(NamedTuple):
    """A session's state, and what the other side calls it."""

    link: Link
    why: str
