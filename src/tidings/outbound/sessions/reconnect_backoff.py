"""State machine of a session with exponential reconnect backoff. Pure.

    connected ──lost──▶ reconnecting ──back──▶ connected
        │                    │
        └────logged out──────┴──▶ logged_out ──a person links it again──▶ connected

Checks are frequent, so that waiting messages are sent as soon as the session is back. Reconnects back off,
5 s × 2ⁿ up to 60 s; after five failures an event is sent. The count resets only after a connection has lasted
a minute, so a flapping session backs off further each time.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.time import MINUTE, SECOND
from ...store.port import Row
from ..channels.session import SessionCheck, SessionStatus

FIRST_DELAY = 5 * SECOND
MAX_DELAY = 60 * SECOND
MAX_FAILURES = 5  # failed reconnects until the event `channel.unreachable`
STABLE_AFTER = MINUTE  # a connection that lasted this long resets the count
CHECK_INTERVALS = {
    SessionStatus.CONNECTED: 15 * SECOND,
    SessionStatus.RECONNECTING: SECOND,
    SessionStatus.LOGGED_OUT: 5 * SECOND,
}

UNREACHABLE = "unreachable"


class StoredSession(NamedTuple):
    """A session's row before a check."""

    link: SessionStatus
    why: str
    since: int
    attempts: int
    told: str | None
    lost_at: int | None
    retry_at: int | None

    @property
    def is_fresh_loss(self) -> bool:
        """Whether a send found the session lost and no check has followed yet."""
        return self.link is not SessionStatus.CONNECTED and self.retry_at is None


class SessionTransition(NamedTuple):
    """A session's row after a check."""

    link: SessionStatus
    why: str
    attempts: int
    told: str | None
    lost_at: int | None
    retry_at: int | None
    check_at: int
    is_back: bool = False  # waiting messages may be sent
    nudge: bool = False  # request a reconnect
    news: str | None = None  # the event type to send


def read_session(row: Row) -> StoredSession:
    """Parse a row."""
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
    """The delay before the next reconnect: 5 s × 2ⁿ, at most 60 s."""
    return min(FIRST_DELAY << min(attempts, 8), MAX_DELAY)


def after_send_failure(before: StoredSession, now: int) -> SessionTransition:
    """A send found the session lost; it outweighs the status, so the next check waits for the delay."""
    at = now + reconnect_delay(before.attempts)
    return _transition(before, before.link, before.why, before.attempts, before.lost_at or now, at, at)


def unchanged(before: StoredSession, now: int) -> SessionTransition:
    """No transition yet: check again at once."""
    link, why, _, attempts, told, lost_at, retry_at = before
    return SessionTransition(link, why, attempts, told, lost_at, retry_at, now)


def after_check(before: StoredSession, found: SessionCheck, now: int) -> SessionTransition:
    """The transition after a status check."""
    match found.link:
        case SessionStatus.CONNECTED:
            return _connected(before, found.why, now)
        case SessionStatus.LOGGED_OUT:
            at = now + CHECK_INTERVALS[found.link]
            return _transition(before, found.link, found.why, 0, before.lost_at or now, now, at)
        case SessionStatus.RECONNECTING:
            return _reconnecting(before, found.why, now)


def _connected(before: StoredSession, why: str, now: int) -> SessionTransition:
    is_back = before.link is not SessionStatus.CONNECTED
    attempts = before.attempts
    if is_back:
        attempts += before.told not in (None, SessionStatus.CONNECTED)  # counts until it has lasted
    elif now - before.since >= STABLE_AFTER:
        attempts = 0
    look_at = now + CHECK_INTERVALS[SessionStatus.CONNECTED]
    after = _transition(before, SessionStatus.CONNECTED, why, attempts, None, None, look_at)
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
    after = _transition(before, SessionStatus.RECONNECTING, why, attempts, before.lost_at or now, retry_at, check_at)
    return after._replace(nudge=nudge)


def _transition(
    before: StoredSession,
    link: SessionStatus,
    why: str,
    attempts: int,
    lost_at: int | None,
    retry_at: int | None,
    check_at: int,
) -> SessionTransition:
    """The new row and its event: each state is reported once, `unreachable` after MAX_FAILURES."""
    word = UNREACHABLE if link is SessionStatus.RECONNECTING and attempts >= MAX_FAILURES else str(link)
    is_news = word != (before.told or SessionStatus.CONNECTED)
    if word == SessionStatus.RECONNECTING and before.told == UNREACHABLE:
        is_news = False
    told = word if is_news else before.told
    news = f"channel.{word}" if is_news else None
    return SessionTransition(link, why, attempts, told, lost_at, retry_at, check_at, news=news)
