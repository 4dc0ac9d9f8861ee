"""Decisions: what an outcome means for its task and for its channel. Pure; time and chance are arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown
from ..model.task import Category, OnUnknown, Task, TaskState, Transition
from ..model.time import SECOND, iso, micros
from .lanes import Lane
from .retry import retry_delay

LOOKUP_DELAY = 5 * SECOND
OFFLINE_DELAY = 5 * SECOND  # how long a channel waits that is offline, if nobody keeps its session
_LONGEST = 2000  # characters kept of what the other side said
ISOLATE_AFTER = 2  # node deaths after which a task is tried alone


@dataclass(frozen=True, slots=True)
class ThrottleChannel:
    """Nothing starts on the channel before an instant."""

    queue: str
    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class PauseChannel:
    """Nothing starts on the channel until a person resumes it."""

    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class DisconnectChannel:
    """The channel's session is down: nothing starts until whoever keeps it says that it is back."""

    queue: str
    reason: str
    needs_person: bool


class TaskDecision(NamedTuple):
    """The task's next move, the word it is counted under, and what it means for the whole channel."""

    move: Transition
    what: str
    effect: ThrottleChannel | PauseChannel | DisconnectChannel | None = None


def decide(
    task: Task, outcome: Outcome, lane: Lane, *, now: int, chance: Callable[[], float]
) -> TaskDecision:
    """One outcome, one decision. `chance` is asked once, where a wait is to be jittered."""
    if type(outcome) is Done:
        receipt = None if outcome.receipt is None else sanitize_text(outcome.receipt)
        return TaskDecision(
            Transition(task.id, task.claim_no, TaskState.DONE, task.attempts, None, None, receipt), "done"
        )
    decision = _decide(task, outcome, lane, now, chance())
    return decision._replace(move=decision.move._replace(detail=sanitize_text(decision.move.detail or "")))


def _decide(task: Task, outcome: Outcome, lane: Lane, now: int, chance: float) -> TaskDecision:
    match outcome:
        case Done():
            raise AssertionError("decided above")
        case Retry(whole_channel=True, category=category, reason=reason, after=after):
            pause = retry_delay(lane.policy, 1, 1, category, chance=chance, after=after)
            until = now + (60 * SECOND if pause is None else micros(pause))
            move = _back(task, max(task.due_at, now), detail=reason, category=category)
            return TaskDecision(move, f"throttled:{category}", ThrottleChannel(lane.queue, until, reason))
        case Reject(whole_channel=True, category=category, reason=reason):
            move = _back(task, task.due_at, detail=reason, category=category)
            return TaskDecision(move, f"paused:{category}", PauseChannel(lane.queue, reason))
        case Offline():
            return _offline(task, outcome, lane, now)
        case Retry():
            return _retry(task, outcome, lane, now, chance)
        case Reject(category=category, reason=reason):
            return TaskDecision(_failed(task, reason, category), f"failed:{category}")
        case Defer(until=until, why=why):
            return TaskDecision(_back(task, until, detail=why), "deferred")
        case Skip(why=why):
            move = _back(task, task.due_at, detail=why)
            return TaskDecision(move._replace(to=TaskState.CANCELLED, due_at=None, detail=why), "skipped")
        case Unknown(evidence=evidence, hold=True):
            return TaskDecision(_failed(task, evidence, None, unknown=True), "unknown")
        case Unknown(evidence=evidence):
            return _in_doubt(task, evidence, lane, now, chance)


def decide_after_crash(
    task: Task, lane: Lane | None, *, started: bool, alone: bool, now: int, quarantine_after: int
) -> TaskDecision:
    """Decide what happens to a task whose node died: free when it had not started, unknown when it had.

    A task that is sent again keeps its due time, so it resumes ahead of the backlog that built up meanwhile.
    Only a task that was alone on its node is surely to blame; the others are merely suspected, and are
    tried alone next time.
    """
    crashes = task.crashes + 1 if alone else max(task.crashes, min(task.crashes + 1, ISOLATE_AFTER))
    if crashes >= quarantine_after and alone:
        reason = f"it took its node down {crashes} times and was set aside"
        return TaskDecision(
            _failed(task, reason, Category.SYSTEM, crashes=crashes, unknown=started), "failed:system"
        )
    if not started or lane is None:
        move = _back(task, task.due_at, detail="its node died before it had begun", crashes=crashes)
        return TaskDecision(move, "given_back")
    evidence = "its node died while it was being sent"
    if lane.on_unknown is OnUnknown.HOLD:
        return TaskDecision(_failed(task, evidence, None, crashes=crashes, unknown=True), "unknown")
    due = min(task.due_at, now)
    move = Transition(
        task.id,
        task.claim_no,
        TaskState.PENDING,
        task.attempts,
        due,
        None,
        evidence,
        True,
        task.throttles,
        crashes,
    )
    return TaskDecision(move, "unknown")


def decide_after_rewind(task: Task, on_unknown: str, *, at: int) -> Transition:
    """Decide what happens to a waiting task that may have been sent on a copy of the database that is lost.

    It is unknown, as if its node had died: failed where only a person may send it again, otherwise sent or
    asked for `at` the time when an attempt that is still under way must have ended.
    """
    evidence = "the database has gone back, and it may have been sent on the copy that was lost"
    if on_unknown == OnUnknown.HOLD:
        return _failed(task, evidence, None, unknown=True)
    due = at if task.expires_at is None else min(at, task.expires_at - 1)
    return _back(task, due, detail=evidence)._replace(attempts=task.attempts, unknown=True)


def _retry(task: Task, outcome: Retry, lane: Lane, now: int, chance: float) -> TaskDecision:
    category = outcome.category
    throttled = category is Category.THROTTLING
    throttles = task.throttles + throttled
    most, after = task.max_attempts, outcome.after
    pause = retry_delay(
        lane.policy, task.attempts, throttles, category, chance=chance, after=after, max_attempts=most
    )
    if pause is None:
        return TaskDecision(_failed(task, outcome.reason, category), f"failed:{category}")
    attempts = task.attempts - throttled  # waiting for a known limit spends no try
    move = _again(task, attempts, now + micros(pause), category, outcome.reason, throttles=throttles)
    return TaskDecision(move, f"retry:{category}")


def _offline(task: Task, outcome: Offline, lane: Lane, now: int) -> TaskDecision:
    """It keeps its place: what is due first goes out first when the session is back."""
    move = _back(task, task.due_at, detail=outcome.reason)
    if lane.has_session:
        return TaskDecision(
            move, "offline", DisconnectChannel(lane.queue, outcome.reason, outcome.needs_person)
        )
    return TaskDecision(move, "offline", ThrottleChannel(lane.queue, now + OFFLINE_DELAY, outcome.reason))


def _in_doubt(task: Task, evidence: str, lane: Lane, now: int, chance: float) -> TaskDecision:
    if lane.on_unknown is OnUnknown.HOLD:
        return TaskDecision(_failed(task, evidence, None, unknown=True), "unknown")
    pause = retry_delay(
        lane.policy, task.attempts, 0, Category.TEMPORARY, chance=chance, max_attempts=task.max_attempts
    )
    if pause is None:
        return TaskDecision(_failed(task, evidence, None, unknown=True), "unknown")
    first_question = lane.on_unknown is OnUnknown.ASK and not task.unknown
    at = now + (LOOKUP_DELAY if first_question else micros(pause))
    return TaskDecision(_again(task, task.attempts, at, None, evidence, unknown=True), "unknown")


def sanitize_text(text: str) -> str:
    """What others say, in a form that every database keeps: no NUL, no half characters, not endless."""
    return text[:_LONGEST].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _again(
    task: Task,
    attempts: int,
    at: int,
    category: Category | None,
    reason: str,
    *,
    unknown: bool = False,
    throttles: int | None = None,
    crashes: int | None = None,
) -> Transition:
    """Back to pending. An attempt after the expiry is not made: the task waits for its expiry instead."""
    if task.expires_at is not None and at >= task.expires_at:
        at = task.expires_at
        reason = f"{reason} (no further try fits before it expires at {iso(at)})"
    throttles = task.throttles if throttles is None else throttles
    crashes = task.crashes if crashes is None else crashes
    fence = (task.id, task.claim_no, TaskState.PENDING)
    return Transition(*fence, attempts, at, category, reason, unknown, throttles, crashes)


def _back(
    task: Task, at: int, *, detail: str, category: Category | None = None, crashes: int | None = None
) -> Transition:
    """Back to pending without an attempt spent."""
    return _again(task, task.attempts - 1, at, category, detail, crashes=crashes)


def _failed(
    task: Task, reason: str, category: Category | None, *, crashes: int | None = None, unknown: bool = False
) -> Transition:
    move = _again(task, task.attempts, 0, category, reason, unknown=unknown, crashes=crashes)
    return move._replace(to=TaskState.FAILED, due_at=None)
