"""Escalation reasons and the text of the notice to admins. Pure.

For each reason, one table defines whether it opens a case, notifies the admins and has a deadline, and the
remedy in the notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class EscalationReason(NamedTuple):
    """How a reason is escalated."""

    remedy: str
    opens_case: bool = True
    notifies: bool = True
    has_deadline: bool = True


_CLAIM = "claim it: tidings cases claim CASE --by NAME"
REASONS: Mapping[str, EscalationReason] = {
    "unclear": EscalationReason(f"answer in the group, or {_CLAIM}"),
    "calendar_down": EscalationReason("check the calendar; then hand the case back, or enter the shift manually"),
    "partial": EscalationReason("enter the missing shifts manually, then close the case"),
    "not_done": EscalationReason("enter the missing shifts manually, then close the case"),
    "held": EscalationReason("decide what it is: tidings cases handback CASE --related (to the open request) or --new"),
    "stuck": EscalationReason("check the commands of its plan: tidings calendar history"),
    "doubtful_answers": EscalationReason(_CLAIM),
    "unclaimed": EscalationReason(_CLAIM, opens_case=False),
    "message_failed": EscalationReason("see: tidings inbox list --state failed; then: tidings inbox retry ID"),
    "intent_unsure": EscalationReason("check whether it was a request", opens_case=False),
    "unsaid": EscalationReason("check the reply channel", opens_case=False),
    "inbox_changed": EscalationReason(
        "check whether its result is still wanted, or ask the sender for a new message", opens_case=False
    ),
    "inbox_identity_changed": EscalationReason("update the roster and the contacts", opens_case=False),
    "source_failing": EscalationReason("check the source and the database: tidings inbox sources", opens_case=False),
    "source_overrun": EscalationReason("check the machine that polls: tidings inbox sources", opens_case=False),
    "source_gap": EscalationReason("check the group for missing messages", opens_case=False),
    "review": EscalationReason("check whether it was a request", notifies=False, has_deadline=False),
}


class Escalation(NamedTuple):
    """One escalation. While it is unresolved, the same key is only counted and not sent again."""

    reason: str
    issue: str
    key: str
    squad: str | None = None
    speaker: str | None = None
    text: str | None = None
    workflow: str | None = None


def format_escalation(call: Mapping[str, object]) -> str:
    """Format the message to an admin: issue, workflow, squad, user, last message, remedy."""
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
