"""Calls for a person: why, about whom, and what to do next. Pure.

One table says for every reason whether it opens a case, within which time somebody should take it, and what
the admins are told to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class EscalationReason(NamedTuple):
    """What a reason asks of people."""

    remedy: str
    opens_case: bool = True
    is_told: bool = True
    has_deadline: bool = True


_CLAIM = "take it with: tidings cases claim CASE --by NAME"
REASONS: Mapping[str, EscalationReason] = {
    "unclear": EscalationReason(f"answer in the group's place, or {_CLAIM}"),
    "calendar_down": EscalationReason(
        "check the calendar; then hand the case back, or enter the shift by hand"
    ),
    "partial": EscalationReason("enter by hand what was not done, then close the case"),
    "not_done": EscalationReason("enter by hand what was not done, then close the case"),
    "held": EscalationReason(
        "say what it is: tidings cases handback CASE --related (to the open request) or --new"
    ),
    "stuck": EscalationReason("look at the commands of its plan: tidings calendar history"),
    "doubtful_answers": EscalationReason(_CLAIM),
    "unclaimed": EscalationReason(_CLAIM, opens_case=False),
    "message_failed": EscalationReason(
        "see: tidings inbox list --state failed; then: tidings inbox retry ID"
    ),
    "intent_unsure": EscalationReason("look whether it was a request", opens_case=False),
    "unsaid": EscalationReason("check the channel that replies go out on", opens_case=False),
    "inbox_changed": EscalationReason(
        "see whether what came of it still holds, and ask the sender to say anew what is meant",
        opens_case=False,
    ),
    "source_failing": EscalationReason(
        "check the source and the database: tidings inbox sources", opens_case=False
    ),
    "source_overrun": EscalationReason(
        "check the machine that polls: tidings inbox sources", opens_case=False
    ),
    "source_hole": EscalationReason("look into the group for what is missing", opens_case=False),
    "review": EscalationReason("look whether it was a request", is_told=False, has_deadline=False),
}


class Escalation(NamedTuple):
    """One call for a person. The same key while nobody has dealt with it: counted, not told again."""

    reason: str
    issue: str
    key: str
    squad: str | None = None
    speaker: str | None = None
    text: str | None = None
    workflow: str | None = None


def format_escalation(call: Mapping[str, object]) -> str:
    """The direct message to an admin: issue, workflow, squad, user, last message, what to do."""
    reason = REASONS.get(str(call["reason"]), EscalationReason("see: tidings cases list"))
    lines = [f"Tidings needs you: {call['issue']}."]
    for name, title in (
        ("conversation", "Conversation"),
        ("squad", "Squad"),
        ("speaker", "User"),
        ("text", "Last message"),
        ("workflow", "Workflow"),
        ("case", "Case"),
    ):
        if call.get(name):
            lines.append(f"{title}: {str(call[name])[:300]}")
    remedy = reason.remedy.replace("CASE", str(call["case"])) if call.get("case") else reason.remedy
    lines.append(f"What to do: {remedy}.")
    return "\n".join(lines)
