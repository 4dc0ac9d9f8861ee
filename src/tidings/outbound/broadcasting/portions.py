"""Portions: how much of a broadcast is taken now, and when to look again. Pure; `now` is a value.

At most a window of tasks is open at a time, so pause, cancel and stop stay cheap and others are not kept out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.broadcast import Options, Part, Quiet, Stage, Tally
from ...model.durations import spell
from ...model.time import MINUTE, SECOND
from ...reading.zones import settle, wall

WINDOW = 5_000  # tasks of one broadcast that are open at a time
REFILL = 3_750  # open tasks at which the next are taken: the rest must last until they are there
LOOK = SECOND // 20  # between two looks while something is being sent
SOON, LATER = SECOND, 5 * SECOND  # while everything waits for its time
AHEAD = 2 * SECOND  # how far ahead a rate is made into due times
LEAST_ENDED = 20  # below this a share of errors says nothing


class Look(NamedTuple):
    """What the pump sees of one broadcast at one moment."""

    now: int
    state: str
    options: Options
    tally: Tally
    taken: int
    parts: Sequence[Part]
    starts_at: int  # the latest of its time and of the moment it was frozen
    due_at: int  # when this look was due
    changed_at: int
    grace: int
    bulk: int = WINDOW  # tasks that one transaction should make at the most
    paced_to: int | None = None
    gate: int | None = None
    is_retrying: bool = False


class Start(NamedTuple):
    """Its time has come."""


class End(NamedTuple):
    """It is over, by itself or by a rule; `parks` sets aside what is open."""

    state: Stage
    reason: str | None = None
    parks: bool = False


class Halt(NamedTuple):
    """Its first few are done: wait for a person's go."""

    reason: str


class Resting(NamedTuple):
    """A part whose open tasks must wait for the end of its quiet hours."""

    part: int
    until: int


class Take(NamedTuple):
    """Make tasks of the next recipients, so many of each part, due one `gap` behind the other."""

    portions: tuple[tuple[Part, int], ...]
    due_at: int
    gap: int
    paced_to: int | None
    look_at: int
    resting: tuple[Resting, ...] = ()

    @property
    def size(self) -> int:
        """How many in all."""
        return sum(n for _, n in self.portions)


class Revive(NamedTuple):
    """Start some of the failed ones afresh."""

    room: int
    due_at: int
    gap: int


class Wait(NamedTuple):
    """Nothing to do before an instant."""

    look_at: int
    resting: tuple[Resting, ...] = ()


Verdict = Start | End | Halt | Take | Revive | Wait


def judge(look: Look) -> Verdict:
    """What to do with a broadcast that is new or under way."""
    if look.state == Stage.NEW:
        late = look.now - look.starts_at
        return End(Stage.EXPIRED, _missed(late)) if late > look.grace else Start()
    tally, now = look.tally, look.now
    if (reason := too_many_errors(look.options, tally)) is not None:
        return End(Stage.FAILED, reason, parks=True)
    is_done = tally.open == 0 and not look.is_retrying
    if is_done and look.taken == tally.total:
        return ended(tally)
    if look.taken < tally.total and now - look.due_at > look.grace:
        return End(Stage.EXPIRED, _missed(now - look.due_at))
    if is_done and look.gate is not None and look.taken >= look.gate:
        return Halt(
            f"the first {look.taken} are done ({tally.sent} sent, {tally.errors} failed): resume to go on"
        )
    if look.is_retrying and tally.open <= REFILL:
        return Revive(min(WINDOW - tally.open, look.bulk), now, gap_of(look.options))
    return _portion(look)


def too_many_errors(options: Options, tally: Tally) -> str | None:
    """Why it must stop, counted from the start or from the last resume."""
    if options.error_limit is None:
        return None
    sent, errors = tally.sent - options.since[0], max(0, tally.errors - options.since[1])
    ended_ = sent + errors
    if ended_ < LEAST_ENDED or errors <= options.error_limit * ended_:
        return None
    return f"{errors} of {ended_} failed, more than {options.error_limit:.0%}: mend the cause, then resume"


def ended(tally: Tally) -> End:
    """How a broadcast ends whose recipients have all ended."""
    is_lost = tally.sent == 0 and tally.errors + tally.expired > 0
    return End(Stage.FAILED, "none succeeded") if is_lost else End(Stage.COMPLETED)


def gap_of(options: Options) -> int:
    """The time between two starts; 0 without a rate."""
    return 0 if options.per_second is None else max(1, round(SECOND / options.per_second))


def _portion(look: Look) -> Take | Wait:
    now, options = look.now, look.options
    resting = tuple(_resting(look))
    gap = gap_of(options)
    first = now if look.paced_to is None or not gap else max(now, look.paced_to + gap)
    ready = [part for part in look.parts if part.left and opens_at(part, options, now) <= now]
    room = min(_room(look), sum(part.left for part in ready), _paced(first, gap, now))
    if room <= 0:
        return Wait(_next_look(look, first if gap else None), resting)
    portions: list[tuple[Part, int]] = []
    left = room
    for part in ready:
        if n := min(left, part.left):
            portions.append((part, n))
            left -= n
    paced_to = first + (room - 1) * gap if gap else None
    if paced_to is None:
        look_at = now if room == look.bulk else now + LOOK  # only the size of the bite stopped it: go on
    else:
        look_at = max(now + LOOK, paced_to + gap - AHEAD // 2)
    return Take(tuple(portions), first, gap, paced_to, look_at, resting)


def _room(look: Look) -> int:
    """How many more may be open: refilled when a quarter of the window is gone, up to the canary's gate."""
    if look.tally.open > REFILL:
        return 0
    room = min(WINDOW - look.tally.open, look.bulk)
    return room if look.gate is None else min(room, look.gate - look.taken)


def _paced(first: int, gap: int, now: int) -> int:
    """How many starts lie within the time that a rate is planned ahead."""
    if not gap:
        return WINDOW
    return 0 if first > now + AHEAD else 1 + (now + AHEAD - first) // gap


def _next_look(look: Look, first: int | None) -> int:
    """When there may be something to do: an end to be seen, a start to be made, quiet hours to keep."""
    now, tally = look.now, look.tally
    times = [now + 60 * SECOND]
    if tally.processing:
        times.append(now + LOOK)
    elif tally.open:
        times.append(now + _patience(now - look.changed_at))
        times += [quiet_from(look.options.quiet, zone_of(part, look.options), now) for part in look.parts
                  if look.options.quiet is not None and part.taken]  # fmt: skip
    if tally.open <= REFILL and (look.gate is None or look.taken < look.gate):
        times += [opens_at(part, look.options, now) for part in look.parts if part.left]
        if first is not None:
            times = [max(at, first - AHEAD) if at <= now else at for at in times]
    return max(now + LOOK, min(times))


def _patience(since: int) -> int:
    """How long to leave it alone when nothing is at work just now: the longer, the longer ago it was fed."""
    return LOOK if since < 10 * SECOND else SOON if since < MINUTE else LATER


# -- clocks of the recipients


def zone_of(part: Part, options: Options) -> str:
    """Whose clock counts for a part."""
    return part.zone or options.zone


def opens_at(part: Part, options: Options, now: int) -> int:
    """When the next of a part may start: its own beginning, or the end of its quiet hours."""
    at = max(now, part.starts_at or 0)
    if options.quiet is None:
        return at
    return quiet_until(options.quiet, zone_of(part, options), at) or at


def local_start(scheduled_at: int, zone: str | None, options: Options) -> int:
    """The instant at which clocks of a zone show what was meant in the zone of the broadcast."""
    if not options.own_zone or zone is None:
        return scheduled_at
    there = wall(scheduled_at, ZoneInfo(options.zone))
    return settle(there, ZoneInfo(zone)).at


def quiet_until(quiet: Quiet, zone: str, at: int) -> int | None:
    """When the quiet hours end in which an instant lies; None: it lies in none."""
    there = wall(at, ZoneInfo(zone))
    minute = there.hour * 60 + there.minute
    over_midnight = quiet.begin > quiet.end
    is_quiet = (minute >= quiet.begin or minute < quiet.end) if over_midnight else (
        quiet.begin <= minute < quiet.end
    )  # fmt: skip
    if not is_quiet:
        return None
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if over_midnight and minute >= quiet.begin else 0
    end = settle(midnight + timedelta(days=days, minutes=quiet.end), ZoneInfo(zone)).at
    return max(end, at + SECOND)


def quiet_from(quiet: Quiet | None, zone: str, at: int) -> int:
    """When the next quiet hours begin; far away without any."""
    if quiet is None:
        return 1 << 62
    there = wall(at, ZoneInfo(zone))
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    begins = [
        settle(midnight + timedelta(days=day, minutes=quiet.begin), ZoneInfo(zone)).at for day in (0, 1)
    ]
    return next((begin for begin in begins if begin > at), begins[-1])


def _resting(look: Look) -> list[Resting]:
    quiet = look.options.quiet
    if quiet is None or not look.tally.open:
        return []
    taken = [part for part in look.parts if part.taken]
    ends = [(part.part, quiet_until(quiet, zone_of(part, look.options), look.now)) for part in taken]
    return [Resting(part, until) for part, until in ends if until is not None]


def _missed(late: int) -> str:
    return f"nothing ran at its time, {spell(timedelta(microseconds=late))} ago"
