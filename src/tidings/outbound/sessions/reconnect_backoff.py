"""State machine of a session with exponential reconnect backoff. Pure.

    connected ──lost──▶ reconnecting ──back──▶ connected
        │                    │
        └────logged out──────┴──▶ logged_out ──a person links it again──▶ connected

Checks are frequent, so that waiting messages are sent as soon as the session is back. Reconnects back off,
5 s × 2ⁿ up to 60 s; after five failures an event is sent. The count resets only after a connection has lasted
a minute, so a flapping session backs off further each time. A session is restarted once, and again after an
hour if that did not help. A loss of a few seconds, as some servers report by mistake, is not reported.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.time import HOUR, MINUTE, SECOND
from ...store.port import Row
from ..channels.session import SessionCheck, SessionStatus

FIRST_DELAY = 5 * SECOND
MAX_DELAY = 60 * SECOND
MAX_FAILURES = 5  # failed reconnects until the event `channel.unreachable`
STABLE_AFTER = MINUTE  # a connection that lasted this long resets the count
REPORT_AFTER = 15 * SECOND  # a shorter loss is not reported
RESTART_INTERVAL = HOUR
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
    was_down: bool = False
    restart_wanted: bool = False
    restarted_at: int | None = None

    @property
    def is_fresh_loss(self) -> bool:
        """Whether a send found the session lost and no check has followed yet."""
        return self.link is not SessionStatus.CONNECTED and self.retry_at is None

    def may_restart(self, now: int) -> bool:
        """Whether the last restart is long ago; a time in the future is from before the clock was set back."""
        return self.restarted_at is None or not 0 <= now - self.restarted_at < RESTART_INTERVAL


class SessionTransition(NamedTuple):
    """A session's row after a check."""

    link: SessionStatus
    why: str
    attempts: int
    told: str | None
    lost_at: int | None
    retry_at: int | None
    check_at: int
    was_down: bool = False  # more than a reconnect: waiting messages keep their ordinary expiry
    restarted_at: int | None = None
    is_back: bool = False  # waiting messages may be sent
    nudge: bool = False  # request a reconnect, or
    restart: bool = False  # a restart
    rejected: bool = False  # pause the channel: the server rejects our credentials
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
        bool(row["was_down"]),
        bool(row["restart_wanted"]),
        row["restarted_at"],
    )


def reconnect_delay(attempts: int) -> int:
    """The delay before the next reconnect: 5 s × 2ⁿ, at most 60 s."""
    return min(FIRST_DELAY << min(attempts, 8), MAX_DELAY)


def after_send_failure(before: StoredSession, now: int) -> SessionTransition:
    """A send found the session lost; it outweighs the status, so the next check waits for the delay.

    A session that only seems to work is restarted; if that did not help, it backs off.
    """
    attempts = before.attempts + before.restart_wanted
    at = now + reconnect_delay(before.attempts)
    is_down = before.link is SessionStatus.LOGGED_OUT
    after = _transition(before, SessionCheck(before.link, before.why, is_down), attempts, at, at, now)
    return _restarted(after, now) if before.restart_wanted and before.may_restart(now) else after


def unchanged(before: StoredSession, now: int) -> SessionTransition:
    """No transition yet: check again at once."""
    link, why, _, attempts, told, lost_at, retry_at, was_down, _, restarted_at = before
    return SessionTransition(link, why, attempts, told, lost_at, retry_at, now, was_down, restarted_at)


def after_check(before: StoredSession, found: SessionCheck, now: int) -> SessionTransition:
    """The transition after a status check."""
    match found.link:
        case SessionStatus.CONNECTED:
            return _connected(before, found, now)
        case SessionStatus.LOGGED_OUT:
            at = now + CHECK_INTERVALS[found.link]
            return _transition(before, found._replace(is_down=True), 0, now, at, now)
        case SessionStatus.RECONNECTING:
            return _reconnecting(before, found, now)


def _connected(before: StoredSession, found: SessionCheck, now: int) -> SessionTransition:
    is_back = before.link is not SessionStatus.CONNECTED
    attempts = before.attempts
    if is_back:
        attempts += before.retry_at != before.lost_at  # not at the start; counts until it has lasted
    elif now - before.since >= STABLE_AFTER:
        attempts = 0
    look_at = now + CHECK_INTERVALS[SessionStatus.CONNECTED]
    after = _transition(before, found, attempts, None, look_at, now)
    return after._replace(is_back=is_back, lost_at=None, was_down=False)


def _reconnecting(before: StoredSession, found: SessionCheck, now: int) -> SessionTransition:
    attempts, retry_at = before.attempts, before.retry_at
    if before.link is SessionStatus.LOGGED_OUT:  # a person is linking it
        attempts, retry_at = 0, now + FIRST_DELAY
    is_due = retry_at is not None and now >= retry_at
    attempts += is_due
    if is_due or retry_at is None:
        retry_at = now + reconnect_delay(attempts)
    check_at = now + CHECK_INTERVALS[SessionStatus.LOGGED_OUT if found.rejected else SessionStatus.RECONNECTING]
    after = _transition(before, found, attempts, retry_at, check_at, now)._replace(rejected=found.rejected)
    if is_due and found.restart and before.may_restart(now):
        return _restarted(after, now)
    return after._replace(nudge=is_due and not found.restart and not found.rejected)


def _restarted(after: SessionTransition, now: int) -> SessionTransition:
    return after._replace(nudge=True, restart=True, restarted_at=now)


def _transition(
    before: StoredSession, found: SessionCheck, attempts: int, retry_at: int | None, check_at: int, now: int
) -> SessionTransition:
    """The new row and its event: each state is reported once, `unreachable` after MAX_FAILURES."""
    link, lost_at = found.link, before.lost_at or now
    word = UNREACHABLE if link is SessionStatus.RECONNECTING and attempts >= MAX_FAILURES else str(link)
    is_news = word != (before.told or SessionStatus.CONNECTED)
    if word == SessionStatus.RECONNECTING and (before.told == UNREACHABLE or now - lost_at < REPORT_AFTER):
        is_news = False
    told = word if is_news else before.told
    return SessionTransition(
        link,
        found.why,
        attempts,
        told,
        lost_at,
        retry_at,
        check_at,
        was_down=before.was_down or found.is_down,
        restarted_at=before.restarted_at,
        news=f"channel.{word}" if is_news else None,
    )
