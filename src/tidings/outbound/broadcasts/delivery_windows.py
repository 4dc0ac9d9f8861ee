"""Decide what the feeder does next: open-task window, rate pacing, canary, error limit. Pure.

At most a window of tasks is open at a time, so pause and cancel stay cheap and one broadcast does not block
other messages. `quiet_hours` has the recipient's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from ...model.broadcast import BroadcastOptions, BroadcastState, BroadcastTally, TimezonePart
from ...model.durations import humanize
from ...model.time import MINUTE, SECOND
from .quiet_hours import opens_at, quiet_from, quiet_until, timezone_of

WINDOW = 5_000  # tasks of one broadcast that are open at a time
CHECK_INTERVAL = SECOND // 20  # between two checks while messages are being sent
SOON, LATER = SECOND, 5 * SECOND  # while all open tasks wait for their due time
PACING_HORIZON = 2 * SECOND  # how far ahead a rate is made into due times
MIN_ENDED = 20  # minimum for a meaningful error rate


class FeedState(NamedTuple):
    """What the feeder knows of one broadcast at one instant."""

    now: int
    state: str
    options: BroadcastOptions
    tally: BroadcastTally
    taken: int
    parts: Sequence[TimezonePart]
    starts_at: int  # the later of its scheduled time and its freeze
    due_at: int  # when this check was due
    changed_at: int
    grace: int
    bulk: int = WINDOW  # maximum tasks per transaction
    paced_to: int | None = None
    gate: int | None = None
    is_retrying: bool = False
    window: int = WINDOW

    @property
    def refill(self) -> int:
        """Refill when this few are open, so the rest lasts until the next are written."""
        return self.window * 3 // 4


class StartBroadcast(NamedTuple):
    """Start the broadcast: it is due."""


class EndBroadcast(NamedTuple):
    """End the broadcast; `parks` moves its open tasks to the pause queue."""

    state: BroadcastState
    reason: str | None = None
    parks: bool = False


class PauseAfterCanary(NamedTuple):
    """The canary is done: pause until a person resumes."""

    reason: str


class QuietPart(NamedTuple):
    """A part whose open tasks must wait until its quiet hours end."""

    part: int
    until: int


class FeedRecipients(NamedTuple):
    """Make tasks for the next recipients of each part, due one `gap` apart."""

    portions: tuple[tuple[TimezonePart, int], ...]
    due_at: int
    gap: int
    paced_to: int | None
    check_at: int
    resting: tuple[QuietPart, ...] = ()

    @property
    def size(self) -> int:
        """The total number of recipients."""
        return sum(n for _, n in self.portions)


class RetryFailedRecipients(NamedTuple):
    """Retry some of the failed recipients."""

    room: int
    due_at: int
    gap: int


class WaitUntil(NamedTuple):
    """Do nothing until an instant."""

    check_at: int
    resting: tuple[QuietPart, ...] = ()


FeedDecision = StartBroadcast | EndBroadcast | PauseAfterCanary | FeedRecipients | RetryFailedRecipients | WaitUntil


def decide_feed(look: FeedState) -> FeedDecision:
    """Decide the next action for a new or running broadcast."""
    if look.state == BroadcastState.READY:
        late = look.now - look.starts_at
        return EndBroadcast(BroadcastState.EXPIRED, _missed(late)) if late > look.grace else StartBroadcast()
    tally, now = look.tally, look.now
    if (reason := too_many_errors(look.options, tally)) is not None:
        return EndBroadcast(BroadcastState.FAILED, reason, parks=True)
    is_done = tally.open == 0 and not look.is_retrying
    if is_done and look.taken == tally.total:
        return ended(tally)
    if look.taken < tally.total and now - look.due_at > look.grace:
        return EndBroadcast(BroadcastState.EXPIRED, _missed(now - look.due_at))
    if is_done and look.gate is not None and look.taken >= look.gate:
        return PauseAfterCanary(
            f"the canary of {look.taken} is done ({tally.sent} sent, {tally.errors} failed): resume it"
        )
    if look.is_retrying and tally.open <= look.refill:
        return RetryFailedRecipients(min(look.window - tally.open, look.bulk), now, gap_of(look.options))
    return _portion(look)


def too_many_errors(options: BroadcastOptions, tally: BroadcastTally) -> str | None:
    """Why the error limit stops it, counted from the start or the last resume; None if it does not."""
    if options.error_limit is None:
        return None
    sent, errors = tally.sent - options.since[0], max(0, tally.errors - options.since[1])
    ended_ = sent + errors
    if ended_ < MIN_ENDED or errors <= options.error_limit * ended_:
        return None
    return f"{errors} of {ended_} failed, more than {options.error_limit:.0%}: fix the cause, then resume"


def ended(tally: BroadcastTally) -> EndBroadcast:
    """The final state of a broadcast whose recipients have all ended."""
    is_lost = tally.sent == 0 and tally.errors + tally.expired > 0
    return EndBroadcast(BroadcastState.FAILED, "none succeeded") if is_lost else EndBroadcast(BroadcastState.COMPLETED)


def gap_of(options: BroadcastOptions) -> int:
    """The time between two starts; 0 without a rate limit."""
    return 0 if options.per_second is None else max(1, round(SECOND / options.per_second))


def _portion(look: FeedState) -> FeedRecipients | WaitUntil:
    now, options = look.now, look.options
    resting = tuple(_resting(look))
    gap = gap_of(options)
    first = now if look.paced_to is None or not gap else max(now, look.paced_to + gap)
    ready = [part for part in look.parts if part.left and opens_at(part, options, now) <= now]
    room = min(_room(look), sum(part.left for part in ready), _paced(first, gap, now))
    if room <= 0:
        return WaitUntil(_next_look(look, first if gap else None), resting)
    portions: list[tuple[TimezonePart, int]] = []
    left = room
    for part in ready:
        if n := min(left, part.left):
            portions.append((part, n))
            left -= n
    paced_to = first + (room - 1) * gap if gap else None
    if paced_to is None:
        # continue at once if only the transaction size limited it
        check_at = now if room == look.bulk else now + CHECK_INTERVAL
    else:
        check_at = max(now + CHECK_INTERVAL, paced_to + gap - PACING_HORIZON // 2)
    return FeedRecipients(tuple(portions), first, gap, paced_to, check_at, resting)


def _room(look: FeedState) -> int:
    """How many more may be open: refills when a quarter of the window is done, up to the canary size."""
    if look.tally.open > look.refill:
        return 0
    room = min(look.window - look.tally.open, look.bulk)
    return room if look.gate is None else min(room, look.gate - look.taken)


def _paced(first: int, gap: int, now: int) -> int:
    """How many starts fit into the pacing horizon."""
    if not gap:
        return WINDOW
    return 0 if first > now + PACING_HORIZON else 1 + (now + PACING_HORIZON - first) // gap


def _next_look(look: FeedState, first: int | None) -> int:
    """When to check again: for results, for the next start, or for quiet hours that begin."""
    now, tally = look.now, look.tally
    times = [now + 60 * SECOND]
    if tally.processing:
        times.append(now + CHECK_INTERVAL)
    elif tally.open:
        times.append(now + _patience(now - look.changed_at))
        times += [quiet_from(look.options.quiet_hours, timezone_of(part, look.options), now) for part in look.parts
                  if look.options.quiet_hours is not None and part.taken]  # fmt: skip
    if tally.open <= look.refill and (look.gate is None or look.taken < look.gate):
        times += [opens_at(part, look.options, now) for part in look.parts if part.left]
        if first is not None:
            times = [max(at, first - PACING_HORIZON) if at <= now else at for at in times]
    return max(now + CHECK_INTERVAL, min(times))


def _patience(since: int) -> int:
    """The check interval while nothing is in flight; it grows with the time since the last feed."""
    return CHECK_INTERVAL if since < 10 * SECOND else SOON if since < MINUTE else LATER


def _resting(look: FeedState) -> list[QuietPart]:
    quiet = look.options.quiet_hours
    if quiet is None or not look.tally.open:
        return []
    taken = [part for part in look.parts if part.taken]
    ends = [(part.part, quiet_until(quiet, timezone_of(part, look.options), look.now)) for part in taken]
    return [QuietPart(part, until) for part, until in ends if until is not None]


def _missed(late: int) -> str:
    return f"no process was running when it was due, {humanize(timedelta(microseconds=late))} ago"
