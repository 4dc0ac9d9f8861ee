"""Events: one class per fact. Emitted after the fact is durable; a sink words it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """A fact."""


@dataclass(frozen=True, slots=True)
class BatchSettled(Event):
    """Attempts were written down: how many, what came of them, how long they took together."""

    node: int
    record_count: int
    outcomes: dict[str, int]
    duration_ms: float
    lags: Sequence[float] = field(default=(), repr=False)  # seconds from due to started, of first tries
    times: Sequence[float] = field(default=(), repr=False)  # milliseconds of each attempt


@dataclass(frozen=True, slots=True)
class AttemptFailed(Event):
    """One attempt did not do it."""

    node: int
    task: int
    tenant: str
    queue: str
    attempt: int
    what: str
    category: str | None
    reason: str
    duration_ms: float


@dataclass(frozen=True, slots=True)
class ClaimLost(Event):
    """A result came after its claim had gone to somebody else."""

    node: int
    task: int
    queue: str
    what: str


@dataclass(frozen=True, slots=True)
class TasksExpired(Event):
    """Nobody could start these before their time ran out."""

    count: int


@dataclass(frozen=True, slots=True)
class ChannelStopped(Event):
    """A channel was paused, parked, or its breaker opened."""

    queue: str
    how: str
    reason: str
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ChannelResumed(Event):
    """A channel works again."""

    queue: str


@dataclass(frozen=True, slots=True)
class ChannelLoggedOut(Event):
    """A channel's session needs a person: it must be linked again."""

    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChannelUnreachable(Event):
    """A channel's session does not come back: a person should look."""

    queue: str
    failures: int
    reason: str


@dataclass(frozen=True, slots=True)
class NodeJoined(Event):
    """A process began to work."""

    node: int
    name: str


@dataclass(frozen=True, slots=True)
class NodeLost(Event):
    """A process was given up."""

    node: int
    name: str


@dataclass(frozen=True, slots=True)
class NodeFenced(Event):
    """This process was given up by the others and starts anew."""

    node: int


@dataclass(frozen=True, slots=True)
class TasksReaped(Event):
    """What a dead node had left behind."""

    node: int
    given_back: int
    in_doubt: int
    set_aside: int


@dataclass(frozen=True, slots=True)
class DatabaseRewound(Event):
    """The database has gone back: `unknown` tasks may have been sent on the lost copy."""

    node: int
    survived_at: int
    found_at: int
    unknown: int


@dataclass(frozen=True, slots=True)
class StoreTrouble(Event):
    """The database did not answer; work goes on when it does."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClockDrift(Event):
    """This machine's clock and the database's disagree."""

    seconds: float
    unhealthy: bool


@dataclass(frozen=True, slots=True)
class ClockSetBack(Event):
    """The database's clock was set back; what was counted from the later time was moved."""

    seconds: float
    tasks: int


@dataclass(frozen=True, slots=True)
class Pruned(Event):
    """Old rows were forgotten."""

    tasks: int
    history: int
    nodes: int


@dataclass(frozen=True, slots=True)
class BroadcastMoved(Event):
    """A rule has started, stopped or ended a broadcast."""

    broadcast: str
    tenant: str
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class ReceiptsTaken(Event):
    """A provider told what became of messages: how many are news, known already, and of no message here."""

    queue: str
    new: int
    again: int
    strange: int


@dataclass(frozen=True, slots=True)
class MessagesHeard(Event):
    """A source brought messages: how many are handled, how many ended on arrival, how many were known."""

    source: str
    handled: int
    ended: int
    known: int


@dataclass(frozen=True, slots=True)
class SourceTrouble(Event):
    """A source could not be read, or what it brought could not be written; it goes on where it stopped."""

    source: str
    failures: int
    reason: str


@dataclass(frozen=True, slots=True)
class SourceTakenOver(Event):
    """The reader of a source was replaced."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class AlertRaised(Event):
    """The engine found something wrong with itself."""

    rule: str
    subject: str
    severity: str
    problem: str


@dataclass(frozen=True, slots=True)
class AlertResolved(Event):
    """What was wrong no longer is."""

    rule: str
    subject: str
    severity: str
    problem: str


@dataclass(frozen=True, slots=True)
class StoreSlow(Event):
    """A claim took long: this node asks less often until the database is quicker."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class BrokerLost(Event):
    """RabbitMQ does not answer: nothing is given to transports until it does."""

    reason: str


@dataclass(frozen=True, slots=True)
class BrokerReached(Event):
    """The connection to RabbitMQ stands."""

    broker: str  # host and port


@dataclass(frozen=True, slots=True)
class TasksInherited(Event):
    """What a dead dispatcher had given to transports."""

    node: int
    ended: int
    given_back: int
    in_doubt: int


@dataclass(frozen=True, slots=True)
class NoTransport(Event):
    """Nobody took what was handed out on this channel; it is tried again now and then."""

    queue: str


@dataclass(frozen=True, slots=True)
class TransportLost(Event):
    """Whoever was to send these is gone: they may have been sent."""

    node: int
    in_doubt: int
    set_aside: int


@dataclass(frozen=True, slots=True)
class ParcelUnreadable(Event):
    """A transport cannot read what it was given; the broker sets it aside."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReportUnreadable(Event):
    """A dispatcher cannot read what a transport said; its tasks are decided by their bounds."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReportRefused(Event):
    """Somebody reports on tasks that were never dispatched on that channel; nothing was changed."""

    transport: str
    channel: str
    count: int


@dataclass(frozen=True, slots=True)
class ParcelsSent(Event):
    """How many attempts a transport has made lately."""

    transport: str
    count: int


@dataclass(frozen=True, slots=True)
class AuthenticationFailed(Event):
    """A wrong key was shown; `key` is the public part of what looks like one."""

    address: str
    key: str | None
    where: str  # api, sign-in or feed


@dataclass(frozen=True, slots=True)
class AuthenticationLimited(Event):
    """A key was refused unseen, because too many wrong ones came from its address or for its prefix."""

    address: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Recycling(Event):
    """This process ends in order, so that a fresh one takes its place."""

    reason: str


Emit = Callable[[Event], None]


def discard_event(_event: Event) -> None:
    """The sink that drops everything."""
