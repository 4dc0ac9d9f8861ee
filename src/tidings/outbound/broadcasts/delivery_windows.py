"""Portions: how much of a broadcast is taken now, and when to look again. Pure; `now` is a value.

At most a window of tasks is open at a time, so pause, cancel and stop stay cheap and others are not kept out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...inputs.timezones import resolve_wall_time, wall_time
from ...model.broadcast import BroadcastOptions, BroadcastState, BroadcastTally, QuietHours, TimezonePart
from ...model.durations import humanize
from ...model.time import MINUTE, SECOND

WINDOW = 5_000  # tasks of one broadcast that are open at a time
REFILL = 3_750  # open tasks at which the next are taken: the rest must last until they are there
CHECK_INTERVAL = SECOND // 20  # between two looks while something is being sent
SOON, LATER = SECOND, 5 * SECOND  # while everything waits for its time
PACING_HORIZON = 2 * SECOND  # how far ahead a rate is made into due times
MIN_ENDED = 20  # below this a share of errors says nothing


class FeedState(NamedTuple):
    """What the pump sees of one broadcast at one moment."""

    now: int
    state: str
    options: BroadcastOptions
    tally: BroadcastTally
    taken: int
    parts: Sequence[TimezonePart]
    starts_at: int  # the latest of its time and of the moment it was frozen
    due_at: int  # when this look was due
    changed_at: int
    grace: int
    bulk: int = WINDOW  # tasks that one transaction should make at the most
    paced_to: int | None = None
    gate: int | None = None
    is_retrying: bool = False


class StartBroadcast(NamedTuple):
    """Its time has come."""


class EndBroadcast(NamedTuple):
    """It is over, by itself or by a rule; `parks` sets aside what is open."""

    state: BroadcastState
    reason: str | None = None
    parks: bool = False


class PauseAfterCanary(NamedTuple):
    """Its first few are done: wait for a person's go."""

    reason: str


class QuietPart(NamedTuple):
    """A part whose open tasks must wait for the end of its quiet hours."""

    part: int
    until: int


class FeedRecipients(NamedTuple):
    """Make tasks of the next recipients, so many of each part, due one `gap` behind the other."""

    portions: tuple[tuple[TimezonePart, int], ...]
    due_at: int
    gap: int
    paced_to: int | None
    check_at: int
    resting: tuple[QuietPart, ...] = ()

    @property
    def size(self) -> int:
        """How many in all."""
        return sum(n for _, n in self.portions)


class RetryFailedRecipients(NamedTuple):
    """Start some of the failed ones afresh."""

    room: int
    due_at: int
    gap: int


class WaitUntil(NamedTuple):
    """Nothing to do before an instant."""

    check_at: int
    resting: tuple[QuietPart, ...] = ()


FeedDecision = (
    StartBroadcast | EndBroadcast | PauseAfterCanary | FeedRecipients | RetryFailedRecipients | WaitUntil
)


def decide_feed(look: FeedState) -> FeedDecision:
    """What to do with a broadcast that is new or under way."""
    if look.state == BroadcastState.NEW:
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
            f"the first {look.taken} are done ({tally.sent} sent, {tally.errors} failed): resume to go on"
        )
    if look.is_retrying and tally.open <= REFILL:
        return RetryFailedRecipients(min(WINDOW - tally.open, look.bulk), now, gap_of(look.options))
    return _portion(look)


def too_many_errors(options: BroadcastOptions, tally: BroadcastTally) -> str | None:
    """Why it must stop, counted from the start or from the last resume."""
    if options.error_limit is None:
        return None
    sent, errors = tally.sent - options.since[0], max(0, tally.errors - options.since[1])
    ended_ = sent + errors
    if ended_ < MIN_ENDED or errors <= options.error_limit * ended_:
        return None
    return f"{errors} of {ended_} failed, more than {options.error_limit:.0%}: mend the cause, then resume"


def ended(tally: BroadcastTally) -> EndBroadcast:
    """How a broadcast ends whose recipients have all ended."""
    is_lost = tally.sent == 0 and tally.errors + tally.expired > 0
    return (
        EndBroadcast(BroadcastState.FAILED, "none succeeded")
        if is_lost
        else EndBroadcast(BroadcastState.COMPLETED)
    )


def gap_of(options: BroadcastOptions) -> int:
    """The time between two starts; 0 without a rate."""
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
        check_at = (
            now if room == look.bulk else now + CHECK_INTERVAL
        )  # only the size of the bite stopped it: go on
    else:
        check_at = max(now + CHECK_INTERVAL, paced_to + gap - PACING_HORIZON // 2)
    return FeedRecipients(tuple(portions), first, gap, paced_to, check_at, resting)


def _room(look: FeedState) -> int:
    """How many more may be open: refilled when a quarter of the window is gone, up to the canary's gate."""
    if look.tally.open > REFILL:
        return 0
    room = min(WINDOW - look.tally.open, look.bulk)
    return room if look.gate is None else min(room, look.gate - look.taken)


def _paced(first: int, gap: int, now: int) -> int:
    """How many starts lie within the time that a rate is planned ahead."""
    if not gap:
        return WINDOW
    return 0 if first > now + PACING_HORIZON else 1 + (now + PACING_HORIZON - first) // gap


def _next_look(look: FeedState, first: int | None) -> int:
    """When there may be something to do: an end to be seen, a start to be made, quiet hours to keep."""
    now, tally = look.now, look.tally
    times = [now + 60 * SECOND]
    if tally.processing:
        times.append(now + CHECK_INTERVAL)
    elif tally.open:
        times.append(now + _patience(now - look.changed_at))
        times += [quiet_from(look.options.quiet, zone_of(part, look.options), now) for part in look.parts
                  if look.options.quiet is not None and part.taken]  # fmt: skip
    if tally.open <= REFILL and (look.gate is None or look.taken < look.gate):
        times += [opens_at(part, look.options, now) for part in look.parts if part.left]
        if first is not None:
            times = [max(at, first - PACING_HORIZON) if at <= now else at for at in times]
    return max(now + CHECK_INTERVAL, min(times))


def _patience(since: int) -> int:
    """How long to leave it alone when nothing is at work just now: the longer, the longer ago it was fed."""
    return CHECK_INTERVAL if since < 10 * SECOND else SOON if since < MINUTE else LATER


# -- clocks of the recipients


def zone_of(part: TimezonePart, options: BroadcastOptions) -> str:
    """Whose clock counts for a part."""
    return part.timezone or options.timezone


def opens_at(part: TimezonePart, options: BroadcastOptions, now: int) -> int:
    """When the next of a part may start: its own beginning, or the end of its quiet hours."""
    at = max(now, part.starts_at or 0)
    if options.quiet is None:
        return at
    return quiet_until(options.quiet, zone_of(part, options), at) or at


def local_start(scheduled_at: int, timezone: str | None, options: BroadcastOptions) -> int:
    """The instant at which clocks of a zone show what was meant in the zone of the broadcast."""
    if not options.recipient_timezone or timezone is None:
        return scheduled_at
    there = wall_time(scheduled_at, ZoneInfo(options.timezone))
    return resolve_wall_time(there, ZoneInfo(timezone)).at


def quiet_until(quiet: QuietHours, timezone: str, at: int) -> int | None:
    """When the quiet hours end in which an instant lies; None: it lies in none."""
    there = wall_time(at, ZoneInfo(timezone))
    minute = there.hour * 60 + there.minute
    over_midnight = quiet.begin > quiet.end
    is_quiet = (minute >= quiet.begin or minute < quiet.end) if over_midnight else (
        quiet.begin <= minute < quiet.end
    )  # fmt: skip
    if not is_quiet:
        return None
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if over_midnight and minute >= quiet.begin else 0
    end = resolve_wall_time(midnight + timedelta(days=days, minutes=quiet.end), ZoneInfo(timezone)).at
    return max(end, at + SECOND)


def quiet_from(quiet: QuietHours | None, timezone: str, at: int) -> int:
    """When the next quiet hours begin; far away without any."""
    if quiet is None:
        return 1 << 62
    there = wall_time(at, ZoneInfo(timezone))
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    begins = [
        resolve_wall_time(midnight + timedelta(days=day, minutes=quiet.begin), ZoneInfo(timezone)).at
        for day in (0, 1)
    ]
    return next((begin for begin in begins if begin > at), begins[-1])


def _resting(look: FeedState) -> list[QuietPart]:
    quiet = look.options.quiet
    if quiet is None or not look.tally.open:
        return []
    taken = [part for part in look.parts if part.taken]
    ends = [(part.part, quiet_until(quiet, zone_of(part, look.options), look.now)) for part in taken]
    return [QuietPart(part, until) for part, until in ends if until is not None]


def _missed(late: int) -> str:
    return f"nothing ran at its time, {humanize(timedelta(microseconds=late))} ago"
