"""Correlation: which open workflow a message belongs to, and whether it starts a new one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from ..domain import Intent, Speaker, WorkflowRelation
from .confirmation import is_no, is_yes
from .instance import Workflow
from .state_machine import ANSWERABLE

SURE = 0.8  # at this confidence the model is not asked
RELATED = 0.5  # the least confidence that counts as related


class MessageDecision(StrEnum):
    """What was decided about a message."""

    RESUMED = "resumed"
    STARTED = "started"
    QUEUED = "queued"  # behind the running request of its squad
    HELD = "held"  # until a person says whether it is related or new
    KEPT = "kept"  # while a person holds the conversation
    REVIEW = "review"  # possibly a request
    UNSURE = "unsure"  # a request, with low confidence
    NOISE = "noise"
    EMPTY = "empty"
    CHANGED = "changed"  # an edit or deletion of a handled message
    GAVE_UP = "gave_up"


class WorkflowMatch(NamedTuple):
    """The workflow that a message would answer; `is_guess` if others matched equally well."""

    flow: Workflow | None
    is_guess: bool = False


def own(flows: Sequence[Workflow], speaker: Speaker, commanders: Sequence[str]) -> list[Workflow]:
    """Return the workflows that a speaker may continue: the squad's own; commanders fall back to all."""
    mine = [flow for flow in flows if flow.squad == speaker.squad]
    if mine or speaker.role not in commanders:
        return mine
    return list(flows)


def choose(flows: Sequence[Workflow], text: str, days: Sequence[str]) -> WorkflowMatch:
    """Choose an open workflow by day and by open question; of several matches the newest, as a guess."""
    open_ = [flow for flow in flows if flow.stage in ANSWERABLE]
    if len(open_) <= 1:
        return WorkflowMatch(open_[0] if open_ else None)
    of_day = [flow for flow in open_ if set(days) & set(flow.topic.split(","))]
    fitting = [flow for flow in of_day or open_ if fits(text, days, flow.asked)]
    left = fitting or of_day or open_
    return WorkflowMatch(left[-1], is_guess=len(left) > 1)


def fits(text: str, days: Sequence[str], asked: str | None) -> bool:
    """Return whether a text looks like an answer to the question for a slot."""
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


_TIME = re.compile(r"\b([01]?\d|2[0-3]):?[0-5]\d\b|\b\d{1,2}\s*[ap]m?\b|noon|midnight|night|morning|day\b|evening")


def is_sure(relation: WorkflowRelation) -> bool:
    """Return whether the rules are confident enough to skip the model."""
    return relation.related is not None and relation.confidence >= SURE


def is_related(relation: WorkflowRelation) -> bool:
    """Return whether a message is related with enough confidence; unknown counts as no."""
    return bool(relation.related) and relation.confidence >= RELATED


def band(intent: Intent, *, start_threshold: int, review_threshold: int) -> MessageDecision:
    """Classify a message without a workflow by the confidence of its intent."""
    if intent.is_request is False:
        return MessageDecision.NOISE
    if intent.is_request and intent.confidence >= start_threshold:
        return MessageDecision.STARTED
    if intent.confidence >= review_threshold:
        return MessageDecision.REVIEW
    return MessageDecision.UNSURE
