"""Choosing: which workflow a message belongs to, and what becomes of one that belongs to none. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from ..domain import Intent, Speaker, WorkflowRelation
from .confirmation import is_no, is_yes
from .instance import Workflow
from .state_machine import ANSWERABLE, BUSY

SURE = 0.8  # a rule that is this sure needs no second opinion
RELATED = 0.5  # under it: no


class MessageDecision(StrEnum):
    """What was done with a message."""

    RESUMED = "resumed"
    STARTED = "started"
    QUEUED = "queued"  # behind the squad's work
    HELD = "held"  # until a person says what it is
    KEPT = "kept"  # while a person holds the conversation
    REVIEW = "review"  # perhaps a request
    UNSURE = "unsure"  # a request, but hardly
    NOISE = "noise"
    EMPTY = "empty"
    CHANGED = "changed"  # an edit or a delete of what was worked through before
    GAVE_UP = "gave_up"


class WorkflowMatch(NamedTuple):
    """The workflow that an answer would belong to; `is_guess` where several were as good."""

    flow: Workflow | None
    is_guess: bool = False


def own(flows: Sequence[Workflow], speaker: Speaker, commanders: Sequence[str]) -> list[Workflow]:
    """The workflows a speaker may go on with: the squad's; for those who may act for all, else all."""
    mine = [flow for flow in flows if flow.squad == speaker.squad]
    if mine or speaker.role not in commanders:
        return mine
    return list(flows)


def choose(flows: Sequence[Workflow], text: str, days: Sequence[str]) -> WorkflowMatch:
    """Several are open: by day and open question, then the newest, with a warning."""
    open_ = [flow for flow in flows if flow.stage in ANSWERABLE]
    if len(open_) <= 1:
        return WorkflowMatch(open_[0] if open_ else None)
    of_day = [flow for flow in open_ if set(days) & set(flow.topic.split(","))]
    fitting = [flow for flow in of_day or open_ if fits(text, days, flow.asked)]
    left = fitting or of_day or open_
    return WorkflowMatch(left[-1], is_guess=len(left) > 1)


def fits(text: str, days: Sequence[str], asked: str | None) -> bool:
    """Whether a text could answer the question for a slot, by its looks."""
    match asked:
        case "date":
            return bool(days)
        case "start" | "end":
            return bool(_TIME.search(text.lower()))
        case "confirm":
            return is_yes(text) or is_no(text)
        case "squad":
            return bool(re.search(r"\b\d{2}\b", text))
        case _:
            return False


_TIME = re.compile(
    r"\b([01]?\d|2[0-3]):?[0-5]\d\b|\b\d{1,2}\s*[ap]m?\b|noon|midnight|night|morning|day\b|evening"
)


def busy(flows: Sequence[Workflow]) -> list[Workflow]:
    """Those that are at work."""
    return [flow for flow in flows if flow.stage in BUSY]


def is_sure(relation: WorkflowRelation) -> bool:
    """Whether a rule's word is enough."""
    return relation.related is not None and relation.confidence >= SURE


def is_related(relation: WorkflowRelation) -> bool:
    """Yes, and not hardly; what is unclear is no."""
    return bool(relation.related) and relation.confidence >= RELATED


def band(intent: Intent, *, start_at: int, review_threshold: int) -> MessageDecision:
    """What a message without a workflow is."""
    if intent.is_request is False:
        return MessageDecision.NOISE
    if intent.is_request and intent.confidence >= start_at:
        return MessageDecision.STARTED
    if intent.confidence >= review_threshold:
        return MessageDecision.REVIEW
    return MessageDecision.UNSURE
