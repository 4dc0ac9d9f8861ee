"""Decisions: what an outcome means for its task and its channel. Pure; time and randomness are arguments."""

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
OFFLINE_DELAY = 5 * SECOND  # for a channel without session monitor that is offline
_LONGEST = 2000  # characters kept of a provider's text


@dataclass(frozen=True, slots=True)
class ThrottleChannel:
    """The channel is throttled until an instant."""

    queue: str
    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class PauseChannel:
    """The channel is paused until a person resumes it."""

    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class DisconnectChannel:
    """The channel's session is down: nothing starts until it is connected again."""

    queue: str
    reason: str
    needs_person: bool = False
    restart: bool = False  # it only seems to work


class TaskDecision(NamedTuple):
    """The task's transition, its outcome for the tallies, and the effect on the whole channel."""

    move: Transition
    what: str
    effect: ThrottleChannel | PauseChannel | DisconnectChannel | None = None


def decide(task: Task, outcome: Outcome, lane: Lane, *, now: int, chance: Callable[[], float]) -> TaskDecision:
    """Decide the transition of a task after one outcome. `chance` is called once, if a wait needs jitter."""
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
            raise AssertionError("handled above")
        case Retry(whole_channel=True, category=category, reason=reason, after=after):
            delay = retry_delay(lane.policy, 1, 1, category, chance=chance, after=after)
            until = now + (60 * SECOND if delay is None else micros(delay))
            move = pending_move(task, max(task.due_at, now), detail=reason, category=category)
            return TaskDecision(move, f"throttled:{category}", ThrottleChannel(lane.queue, until, reason))
        case Reject(whole_channel=True, category=category, reason=reason):
            move = pending_move(task, task.due_at, detail=reason, category=category)
            return TaskDecision(move, f"paused:{category}", PauseChannel(lane.queue, reason))
        case Offline():
            return _offline(task, outcome, lane, now)
        case Retry():
            return _retry(task, outcome, lane, now, chance)
        case Reject(category=category, reason=reason, opted_out=opted_out):
            move = failed_move(task, reason, category)._replace(opted_out=opted_out)
            return TaskDecision(move, f"failed:{category}")
        case Defer(until=until, why=why):
            return TaskDecision(pending_move(task, until, detail=why), "deferred")
        case Skip(why=why):
            move = pending_move(task, task.due_at, detail=why)
            return TaskDecision(move._replace(to=TaskState.CANCELLED, due_at=None, detail=why), "skipped")
        case Unknown(evidence=evidence, hold=hold, session_failed=session_failed):
            decision = _unknown(task, evidence, lane, now, chance, hold=hold)
            if session_failed and lane.has_session:
                decision = decision._replace(effect=DisconnectChannel(lane.queue, evidence, restart=True))
            return decision


def decide_after_rewind(task: Task, on_unknown: str, *, at: int) -> Transition:
    """Decide the transition of a pending task that may have been sent before the database lost data.

    Its outcome is unknown, as if its node had died: failed if only a person may resend it, otherwise pending
    until `at`, when an attempt that is still running must have ended.
    """
    evidence = "the database lost committed data, and the task may have been sent before"
    if on_unknown == OnUnknown.HOLD:
        return failed_move(task, evidence, None, unknown=True)
    due = at if task.expires_at is None else min(at, task.expires_at - 1)
    return pending_move(task, due, detail=evidence)._replace(attempts=task.attempts, unknown=True)


def _retry(task: Task, outcome: Retry, lane: Lane, now: int, chance: float) -> TaskDecision:
    category = outcome.category
    throttled = category is Category.THROTTLING
    throttles = task.throttles + throttled
    most, after = task.max_attempts, outcome.after
    delay = retry_delay(lane.policy, task.attempts, throttles, category, chance=chance, after=after, max_attempts=most)
    if delay is None:
        return TaskDecision(failed_move(task, outcome.reason, category), f"failed:{category}")
    attempts = task.attempts - throttled  # throttling does not use up an attempt
    move = _pending(task, attempts, now + micros(delay), category, outcome.reason, throttles=throttles)
    return TaskDecision(move, f"retry:{category}")


def _offline(task: Task, outcome: Offline, lane: Lane, now: int) -> TaskDecision:
    """Return the task to its place: it keeps its due time while the session is down."""
    move = pending_move(task, task.due_at, detail=outcome.reason)
    if lane.has_session:
        return TaskDecision(move, "offline", DisconnectChannel(lane.queue, outcome.reason, outcome.needs_person))
    return TaskDecision(move, "offline", ThrottleChannel(lane.queue, now + OFFLINE_DELAY, outcome.reason))


def _unknown(task: Task, evidence: str, lane: Lane, now: int, chance: float, *, hold: bool) -> TaskDecision:
    if hold or lane.on_unknown is OnUnknown.HOLD:
        return TaskDecision(failed_move(task, evidence, None, unknown=True), "unknown")
    delay = retry_delay(
        lane.policy, task.attempts, 0, Category.TEMPORARY, chance=chance, max_attempts=task.max_attempts
    )
    if delay is None:
        return TaskDecision(failed_move(task, evidence, None, unknown=True), "unknown")
    first_question = lane.on_unknown is OnUnknown.ASK and not task.unknown
    at = now + (LOOKUP_DELAY if first_question else micros(delay))
    return TaskDecision(_pending(task, task.attempts, at, None, evidence, unknown=True), "unknown")


def sanitize_text(text: str) -> str:
    """Return text that every database can store: no NUL, no lone surrogates, limited length."""
    return text[:_LONGEST].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _pending(
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
    """Return to pending. If the next attempt would be after the expiry, wait for the expiry instead."""
    if task.expires_at is not None and at >= task.expires_at:
        at = task.expires_at
        reason = f"{reason} (no further attempt before it expires at {iso(at)})"
    throttles = task.throttles if throttles is None else throttles
    crashes = task.crashes if crashes is None else crashes
    fence = (task.id, task.claim_no, TaskState.PENDING)
    return Transition(*fence, attempts, at, category, reason, unknown, throttles, crashes)


def pending_move(
    task: Task, at: int, *, detail: str, category: Category | None = None, crashes: int | None = None
) -> Transition:
    """Return to pending without using up an attempt."""
    return _pending(task, task.attempts - 1, at, category, detail, crashes=crashes)


def failed_move(
    task: Task, reason: str, category: Category | None, *, crashes: int | None = None, unknown: bool = False
) -> Transition:
    move = _pending(task, task.attempts, 0, category, reason, unknown=unknown, crashes=crashes)
    return move._replace(to=TaskState.FAILED, due_at=None)
