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
from ..channels.session import SessionCheck, SessionStatus

FIRST_DELAY = 5 * SECOND
MAX_DELAY = 60 * SECOND
MAX_FAILURES = 5  # reconnects in a row after which a person is told
STABLE_AFTER = MINUTE  # a connection that has lasted so long starts the count anew
CHECK_INTERVALS = {
    SessionStatus.CONNECTED: 15 * SECOND,
    SessionStatus.RECONNECTING: SECOND,
    SessionStatus.LOGGED_OUT: 5 * SECOND,
}

UNREACHABLE = "unreachable"


class StoredSession(NamedTuple):
    """A session's row, as it was before the look."""

    link: SessionStatus
    why: str
    since: int
    attempts: int
    told: str | None
    lost_at: int | None
    retry_at: int | None

    @property
    def is_fresh_loss(self) -> bool:
        """Whether a send has met the loss, and nobody has thought about it yet."""
        return self.link is not SessionStatus.CONNECTED and self.retry_at is None


class SessionTransition(NamedTuple):
    """What the row says after it."""

    link: SessionStatus
    why: str
    attempts: int
    told: str | None
    lost_at: int | None
    retry_at: int | None
    check_at: int
    is_back: bool = False  # what waited may go
    nudge: bool = False  # ask for a reconnect
    news: str | None = None  # the type of the event to tell


def read_session(row: Row) -> StoredSession:
    """A row, read."""
    return StoredSession(
        SessionStatus(row["session_state"]),
        row["session_reason"] or "",
        row["session_since"],
        row["reconnects"],
        row["session_reported"],
        row["lost_at"],
        row["retry_at"],
    )


def reconnect_delay(attempts: int) -> int:
    """How long until the next reconnect, after so many: 5 s × 2ⁿ, 60 s at the most."""
    return min(FIRST_DELAY << min(attempts, 8), MAX_DELAY)


def after_send_failure(before: StoredSession, now: int) -> SessionTransition:
    """A send met the loss. Its word is better than the status: nobody looks until a pause has passed."""
    at = now + reconnect_delay(before.attempts)
    return _told(before, before.link, before.why, before.attempts, before.lost_at or now, at, at)


def unchanged(before: StoredSession, now: int) -> SessionTransition:
    """Nothing follows yet: look again at once."""
    link, why, _, attempts, told, lost_at, retry_at = before
    return SessionTransition(link, why, attempts, told, lost_at, retry_at, now)


def after_check(before: StoredSession, found: SessionCheck, now: int) -> SessionTransition:
    """A look found the session in a state."""
    match found.link:
        case SessionStatus.CONNECTED:
            return _connected(before, found.why, now)
        case SessionStatus.LOGGED_OUT:
            at = now + CHECK_INTERVALS[found.link]
            return _told(before, found.link, found.why, 0, before.lost_at or now, now, at)
        case SessionStatus.RECONNECTING:
            return _reconnecting(before, found.why, now)


def _connected(before: StoredSession, why: str, now: int) -> SessionTransition:
    is_back = before.link is not SessionStatus.CONNECTED
    attempts = before.attempts
    if is_back:
        attempts += before.told not in (
            None,
            SessionStatus.CONNECTED,
        )  # a reconnect; it counts until it has lasted
    elif now - before.since >= STABLE_AFTER:
        attempts = 0
    after = _told(
        before,
        SessionStatus.CONNECTED,
        why,
        attempts,
        None,
        None,
        now + CHECK_INTERVALS[SessionStatus.CONNECTED],
    )
    return after._replace(is_back=is_back)


def _reconnecting(before: StoredSession, why: str, now: int) -> SessionTransition:
    attempts, retry_at = before.attempts, before.retry_at
    if before.link is SessionStatus.LOGGED_OUT:  # a person is linking it
        attempts, retry_at = 0, now + FIRST_DELAY
    nudge = retry_at is not None and now >= retry_at
    attempts += nudge
    if nudge or retry_at is None:
        retry_at = now + reconnect_delay(attempts)
    check_at = now + CHECK_INTERVALS[SessionStatus.RECONNECTING]
    after = _told(
        before, SessionStatus.RECONNECTING, why, attempts, before.lost_at or now, retry_at, check_at
    )
    return after._replace(nudge=nudge)


def _told(
    before: StoredSession,
    link: SessionStatus,
    why: str,
    attempts: int,
    lost_at: int | None,
    retry_at: int | None,
    check_at: int,
) -> SessionTransition:
    """The row, and whether the world hears of it: each state once, `unreachable` in place of a fifth try."""
    word = UNREACHABLE if link is SessionStatus.RECONNECTING and attempts >= MAX_FAILURES else str(link)
    is_news = word != (before.told or SessionStatus.CONNECTED)
    if word == SessionStatus.RECONNECTING and before.told == UNREACHABLE:
        is_news = False
    told = word if is_news else before.told
    news = f"channel.{word}" if is_news else None
    return SessionTransition(link, why, attempts, told, lost_at, retry_at, check_at, news=news)
