"""The course of a session: what a look at it means for its row. Pure; the clock is an argument.

    connected ──lost──▶ reconnecting ──back──▶ connected
        │                    │
        └────logged out──────┴──▶ logged_out ──a person links it again──▶ connected

Looking is cheap and frequent, so that what waits goes out as soon as the session is back. Asking for a
reconnect is not: 5 s × 2ⁿ up to 60 s apart, and after five that did not help a person is told. Reconnects are
counted until a connection has lasted a minute, so one that comes and goes is left alone for longer each time.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.time import MINUTE, SECOND
from ...store.port import Row
from ..channels.connection import Connection, Link

FIRST = 5 * SECOND
LONGEST = 60 * SECOND
FAILURES = 5  # reconnects in a row after which a person is told
LASTS = MINUTE  # a connection that has lasted so long starts the count anew
LOOKS = {Link.CONNECTED: 15 * SECOND, Link.RECONNECTING: SECOND, Link.LOGGED_OUT: 5 * SECOND}

UNREACHABLE = "unreachable"


class Known(NamedTuple):
    """A session's row, as it was before the look."""

    link: Link
    why: str
    since: int
    tries: int
    told: str | None
    lost_at: int | None
    retry_at: int | None

    @property
    def is_fresh_loss(self) -> bool:
        """Whether a send has met the loss, and nobody has thought about it yet."""
        return self.link is not Link.CONNECTED and self.retry_at is None


class Next(NamedTuple):
    """What the row says after it."""

    link: Link
    why: str
    tries: int
    told: str | None
    lost_at: int | None
    retry_at: int | None
    look_at: int
    is_back: bool = False  # what waited may go
    nudge: bool = False  # ask for a reconnect
    news: str | None = None  # the type of the event to tell


def known(row: Row) -> Known:
    """A row, read."""
    return Known(
        Link(row["link"]),
        row["link_why"] or "",
        row["link_since"],
        row["link_tries"],
        row["link_told"],
        row["lost_at"],
        row["retry_at"],
    )


def pause(tries: int) -> int:
    """How long until the next reconnect, after so many: 5 s × 2ⁿ, 60 s at the most."""
    return min(FIRST << min(tries, 8), LONGEST)


def met(before: Known, now: int) -> Next:
    """A send met the loss. Its word is better than the status: nobody looks until a pause has passed."""
    at = now + pause(before.tries)
    return _told(before, before.link, before.why, before.tries, before.lost_at or now, at, at)


def same(before: Known, now: int) -> Next:
    """Nothing follows yet: look again at once."""
    link, why, _, tries, told, lost_at, retry_at = before
    return Next(link, why, tries, told, lost_at, retry_at, now)


def looked(before: Known, found: Connection, now: int) -> Next:
    """A look found the session in a state."""
    match found.link:
        case Link.CONNECTED:
            return _connected(before, found.why, now)
        case Link.LOGGED_OUT:
            at = now + LOOKS[found.link]
            return _told(before, found.link, found.why, 0, before.lost_at or now, now, at)
        case Link.RECONNECTING:
            return _reconnecting(before, found.why, now)


def _connected(before: Known, why: str, now: int) -> Next:
    is_back = before.link is not Link.CONNECTED
    tries = before.tries
    if is_back:
        tries += before.told not in (None, Link.CONNECTED)  # a reconnect; it counts until it has lasted
    elif now - before.since >= LASTS:
        tries = 0
    after = _told(before, Link.CONNECTED, why, tries, None, None, now + LOOKS[Link.CONNECTED])
    return after._replace(is_back=is_back)


def _reconnecting(before: Known, why: str, now: int) -> Next:
    tries, retry_at = before.tries, before.retry_at
    if before.link is Link.LOGGED_OUT:  # a person is linking it
        tries, retry_at = 0, now + FIRST
    nudge = retry_at is not None and now >= retry_at
    tries += nudge
    if nudge or retry_at is None:
        retry_at = now + pause(tries)
    look_at = now + LOOKS[Link.RECONNECTING]
    after = _told(before, Link.RECONNECTING, why, tries, before.lost_at or now, retry_at, look_at)
    return after._replace(nudge=nudge)


def _told(
    before: Known, link: Link, why: str, tries: int, lost_at: int | None, retry_at: int | None, look_at: int
) -> Next:
    """The row, and whether the world hears of it: each state once, `unreachable` in place of a fifth try."""
    word = UNREACHABLE if link is Link.RECONNECTING and tries >= FAILURES else str(link)
    is_news = word != (before.told or Link.CONNECTED)
    if word == Link.RECONNECTING and before.told == UNREACHABLE:
        is_news = False
    told = word if is_news else before.told
    news = f"channel.{word}" if is_news else None
    return Next(link, why, tries, told, lost_at, retry_at, look_at, news=news)
