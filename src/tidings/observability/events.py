"""Events: one class per fact, emitted after the fact is durable. Sinks format them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any, dataclass_transform

from ..model.errors import error_text, traceback_text


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Event:
    """A fact about the engine. Subclasses are frozen dataclasses."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True)(cls)


class BatchSettled(Event):
    """A batch of attempts was written: their number, outcomes and total duration."""

    node: int
    record_count: int
    outcomes: dict[str, int]
    duration_ms: float
    lags: Sequence[float] = field(default=(), repr=False)  # seconds from due to started, of first attempts
    times: Sequence[float] = field(default=(), repr=False)  # seconds of each attempt
    tenants: Mapping[tuple[str, str], int] = field(default_factory=dict, repr=False)  # attempts by tenant and outcome
    successes: Callable[[], Iterable[Mapping[str, Any]]] = field(default=tuple, repr=False)  # fields of a line for each


class BatchStarted(Event):
    """An attempt at a batch of a migration begins: the batch's open records and its size."""

    job: str
    batch: str
    tenant: str
    record_count: int
    batch_size: int
    attempt: int


class BatchFinished(Event):
    """An attempt at a batch of a migration has ended: the records that it finished, and the batch's new state."""

    job: str
    batch: str
    tenant: str
    record_count: int
    batch_size: int
    attempt: int
    state: str
    reason: str | None
    duration_ms: float


class UnexpectedError(Event):
    """User code (a hook or connector) raised an unexpected exception."""

    job: str
    batch: str
    tenant: str
    error: str
    exception: str  # the traceback


class AttemptFailed(Event):
    """An attempt did not send its message: it failed, was put back, or its outcome is unknown."""

    node: int
    task: int
    tenant: str
    queue: str
    attempt: int
    outcome: str
    category: str | None
    reason: str
    duration_ms: float
    ids: Mapping[str, str] = field(default_factory=dict)  # public ids; fields of their own in the log
    exception: str | None = None  # traceback of an unexpected error


class ClaimLost(Event):
    """A result arrived after its claim was lost (fenced)."""

    node: int
    task: int
    queue: str
    outcome: str
    tenant: str
    ids: Mapping[str, str] = field(default_factory=dict)


class TasksExpired(Event):
    """Tasks expired before they could start."""

    count: int


class ChannelStopped(Event):
    """A channel was paused, its breaker opened, or its session was lost."""

    queue: str
    state: str
    reason: str
    until: int | None = None


class ChannelResumed(Event):
    """A channel works again."""

    queue: str


class ChannelLoggedOut(Event):
    """A channel's session was logged out; a person must link it again."""

    queue: str
    reason: str


class ChannelUnreachable(Event):
    """A channel's session cannot be restored; a person should look."""

    queue: str
    failures: int
    reason: str


class NodeJoined(Event):
    """This process started to work."""

    node: int
    name: str


class NodeLost(Event):
    """Another process was declared dead."""

    node: int
    name: str


class NodeFenced(Event):
    """Other processes declared this process dead; it rejoins as a new node."""

    node: int


class TasksReaped(Event):
    """The tasks of a dead node were released, became unknown, or were quarantined."""

    node: int
    released: int
    unknown: int
    quarantined: int


class DatabaseRewound(Event):
    """The database lost committed data: `unknown` tasks may have been sent before."""

    node: int
    survived_at: int
    found_at: int
    unknown: int


class StoreError(Event):
    """The database did not respond, or a background step failed; it is repeated."""

    where: str
    reason: str
    exception: str | None = None

    @classmethod
    def of(cls, where: str, error: BaseException) -> StoreError:
        """Return the event for an error, with its traceback if it is unexpected."""
        return cls(where, error_text(error), traceback_text(error))


class AttemptError(Event):
    """A channel raised an unexpected error in a transport; the dispatcher decides about the message."""

    queue: str
    tenant: str
    message: str
    attempt: int
    reason: str
    duration_ms: float
    exception: str | None


class ClockDrift(Event):
    """This machine's clock and the database's disagree."""

    seconds: float
    unhealthy: bool


class ClockSetBack(Event):
    """The database's clock was set back; computed times were moved."""

    seconds: float
    tasks: int


class Pruned(Event):
    """Old rows were deleted."""

    tasks: int
    history: int
    nodes: int


class BroadcastStateChanged(Event):
    """A rule started, stopped or ended a broadcast."""

    broadcast: str
    tenant: str
    state: str
    reason: str | None


class ReceiptsReceived(Event):
    """A provider sent receipts: how many are new, duplicates, and for no known message."""

    queue: str
    new: int
    duplicate: int
    unmatched: int


class MessagesReceived(Event):
    """A source delivered messages: how many are to be handled, ended on arrival, or were known."""

    source: str
    handled: int
    ended: int
    known: int


class SourceError(Event):
    """A source could not be read, or its messages could not be written; it resumes where it stopped."""

    source: str
    failures: int
    reason: str
    exception: str | None = None


class SourceTakenOver(Event):
    """Another process reads the source now."""

    source: str
    reason: str


class AlertRaised(Event):
    """An alert rule found a problem."""

    rule: str
    subject: str
    severity: str
    problem: str


class AlertResolved(Event):
    """The problem of an alert is over."""

    rule: str
    subject: str
    severity: str
    problem: str


class StoreSlow(Event):
    """A claim was slow: this node claims less often until the database is faster."""

    milliseconds: int


class BrokerLost(Event):
    """RabbitMQ does not respond: nothing is published until it does."""

    reason: str


class BrokerReached(Event):
    """The connection to RabbitMQ is established."""

    broker: str  # host and port


class TasksRecovered(Event):
    """The in-flight tasks of a dead dispatcher were recovered."""

    node: int
    ended: int
    released: int
    unknown: int


class NoTransport(Event):
    """No transport consumes the batches of this channel; it is tried again periodically."""

    queue: str


class TransportLost(Event):
    """A transport was lost: its tasks may have been sent."""

    node: int
    unknown: int
    quarantined: int


class BatchUnreadable(Event):
    """A transport cannot decode a batch; the broker dead-letters it."""

    reason: str


class ReportUnreadable(Event):
    """A dispatcher cannot decode a transport's report; its tasks are settled after their timeouts."""

    reason: str


class ReportRefused(Event):
    """A report names tasks that were not dispatched on that channel; nothing was changed."""

    transport: str
    channel: str
    count: int


class TransportAttempts(Event):
    """How many attempts a transport has made recently."""

    transport: str
    count: int


class AuthenticationFailed(Event):
    """A wrong key was used; `key` is the public part of what looks like one."""

    address: str
    key: str | None
    where: str  # api, sign-in or feed


class AuthenticationLimited(Event):
    """A key was rejected unchecked, after too many wrong ones from its address or for its prefix."""

    address: str
    key: str | None


class ProcessRecycling(Event):
    """This process shuts down gracefully so that a new one can replace it."""

    reason: str


Emit = Callable[[Event], None]


def unexpected_error(error: BaseException, job: str, batch: str, tenant: str) -> UnexpectedError:
    """Return the event of an unexpected exception, with its traceback."""
    text = f"{type(error).__name__}: {error}"
    return UnexpectedError(job, batch, tenant, text, "".join(format_exception(error)))


def discard_event(_event: Event) -> None:
    """Discard an event: the sink for tests and tools without a log."""
