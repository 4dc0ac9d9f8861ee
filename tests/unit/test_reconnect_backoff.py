"""The state machine of a session, with its backoff (E7)."""

from __future__ import annotations

import pytest

from tidings.model.time import SECOND
from tidings.outbound.channels.session import SessionCheck, SessionStatus
from tidings.outbound.sessions.reconnect_backoff import (
    SessionTransition,
    StoredSession,
    after_check,
    after_send_failure,
    reconnect_delay,
)
from tidings.outbound.sessions.session_monitor import is_too_late

NOON = 1_800_000_000 * SECOND
UP = SessionCheck(SessionStatus.CONNECTED, "WORKING")
DOWN = SessionCheck(SessionStatus.RECONNECTING, "STARTING")
OUT = SessionCheck(SessionStatus.LOGGED_OUT, "SCAN_QR_CODE")
CONNECTED = StoredSession(SessionStatus.CONNECTED, "WORKING", NOON - 3600 * SECOND, 0, None, None, None)


def known(after: SessionTransition, since: int) -> StoredSession:
    """The row that a check left behind."""
    row = (after.link, after.why, since, after.attempts, after.told, after.lost_at, after.retry_at)
    return StoredSession(*row, after.was_down, restarted_at=after.restarted_at)


def walk(found: SessionCheck, *, seconds: int, start: StoredSession = CONNECTED) -> list[tuple[int, SessionTransition]]:
    """All checks within these seconds, each with its second."""
    looks: list[tuple[int, SessionTransition]] = []
    row, at, since = start, NOON, start.since
    while at <= NOON + seconds * SECOND:
        after = after_check(row, found, at)
        since = since if after.link is row.link else at
        looks.append(((at - NOON) // SECOND, after))
        row, at = known(after, since), after.check_at
    return looks


def test_reconnects_are_five_seconds_times_two_to_the_n_apart_and_a_minute_at_the_most() -> None:
    """E7."""
    assert [reconnect_delay(attempts) // SECOND for attempts in range(7)] == [5, 10, 20, 40, 60, 60, 60]
    assert reconnect_delay(10_000) == 60 * SECOND

    nudges = [second for second, after in walk(DOWN, seconds=300) if after.nudge]
    assert nudges == [5, 15, 35, 75, 135, 195, 255]


def test_a_lost_session_is_checked_every_second_between_two_reconnects() -> None:
    """So that waiting messages are sent within seconds, however long the outage was."""
    seconds = [second for second, _ in walk(DOWN, seconds=100)]
    assert seconds == list(range(101))


def test_an_admin_is_notified_once_after_five_failures() -> None:
    """E7: each state is told once, and `unreachable` stays until it is back."""
    told = [(second, after.news) for second, after in walk(DOWN, seconds=600) if after.news]
    assert told == [(15, "channel.reconnecting"), (135, "channel.unreachable")]

    last = walk(DOWN, seconds=200)[-1][1]
    back = after_check(known(last, NOON), UP, NOON + 201 * SECOND)
    assert (back.is_back, back.news, back.lost_at, back.retry_at) == (True, "channel.connected", None, None)


def test_a_logged_out_session_never_reconnects_automatically() -> None:
    """E7: nobody asks for a reconnect; somebody looks whether a person has linked it."""
    looks = walk(OUT, seconds=600)
    assert not any(after.nudge for _, after in looks)
    assert [after.news for _, after in looks if after.news] == ["channel.logged_out"]

    linking = after_check(known(looks[-1][1], NOON), DOWN, NOON + 700 * SECOND)
    assert (linking.link, linking.nudge, linking.news) == (SessionStatus.RECONNECTING, False, "channel.reconnecting")
    assert linking.lost_at == NOON


def test_a_loss_that_a_send_found_outweighs_the_status_for_the_reconnect_delay() -> None:
    """A status of 'connected' while sends fail would otherwise spin."""
    lost = CONNECTED._replace(link=SessionStatus.RECONNECTING, lost_at=NOON, since=NOON)
    assert lost.is_fresh_loss

    after = after_send_failure(lost, NOON)

    assert (after.check_at, after.retry_at, after.news) == (NOON + 5 * SECOND, NOON + 5 * SECOND, None)
    assert not known(after, NOON).is_fresh_loss


def test_a_flapping_session_backs_off_further_each_time() -> None:
    """Until a connection has lasted a minute."""
    row, at, pauses = CONNECTED, NOON, []
    for _ in range(6):
        after = after_send_failure(
            row._replace(link=SessionStatus.RECONNECTING, lost_at=at, retry_at=None, since=at), at
        )
        pauses.append((after.check_at - at) // SECOND)
        at = after.check_at
        row = known(after_check(known(after, at), UP, at), at)
    assert pauses == [5, 10, 20, 40, 60, 60]

    young = after_check(row, UP, at + 59 * SECOND)
    lasting = after_check(known(young, at), UP, at + 60 * SECOND)
    assert (young.attempts, lasting.attempts) == (6, 0)


def test_the_first_check_of_a_healthy_session_sends_no_event() -> None:
    """A start is not a reconnect."""
    unseen = StoredSession(SessionStatus.RECONNECTING, "nobody has looked yet", NOON, 0, None, NOON, NOON)
    after = after_check(unseen, UP, NOON)
    assert (after.is_back, after.news, after.attempts) == (True, None, 0)


def test_a_restart_is_requested_at_most_once_an_hour_even_if_the_clock_was_set_back() -> None:
    """A time in the future is from before the clock was set back."""
    failed = SessionCheck(SessionStatus.RECONNECTING, "FAILED", is_down=True, restart=True)
    row = StoredSession(SessionStatus.RECONNECTING, "FAILED", NOON, 1, None, NOON, NOON, True)
    for restarted_at, restarts in ((None, True), (-3601, True), (-3599, False), (3600, True)):
        at = None if restarted_at is None else NOON + restarted_at * SECOND
        after = after_check(row._replace(restarted_at=at), failed, NOON)
        assert (after.restart, after.nudge) == (restarts, restarts)
        assert after.restarted_at == (NOON if restarts else at)


@pytest.mark.parametrize(
    ("due", "accepted", "lost", "row", "late"),
    [
        (-301, -900, -900, {}, True),
        (-300, -900, -900, {}, False),
        (-900, -301, -900, {}, True),
        (-900, -200, -900, {}, False),  # given late: it has not waited for long
        (-900, -900, -100, {}, False),  # it waited for something else before
        (-900, -900, -900, {"own_expiry": True}, False),
        (-900, -900, -900, {"group_id": 7}, False),
    ],
)
def test_the_wait_counts_from_the_latest_of_due_accepted_and_lost(
    due: int, accepted: int, lost: int, row: dict[str, object], late: bool
) -> None:
    """B8: first the message's own expiry, then the channel's wait."""
    task = {
        "due_at": NOON + due * SECOND,
        "accepted_at": NOON + accepted * SECOND,
        "own_expiry": False,
        "group_id": None,
    }
    told = is_too_late({**task, **row}, lost_at=NOON + lost * SECOND, wait=300 * SECOND, now=NOON)
    assert told is late
