"""Escalation reasons, the text of the notice to admins, and the steps that write case and notice. Pure.

For each reason, one table defines whether it opens a case, notifies the admins and has a deadline, and the
remedy in the notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

import orjson

from ...model.time import micros
from ...store.port import Step


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
_UNLISTED = EscalationReason("see: tidings cases list")


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
    reason = REASONS.get(str(call["reason"]), _UNLISTED)
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


class EscalationWriter:
    """Builds the steps of escalations for the transaction that caused them. `within` is the deadline of a case."""

    def __init__(self, new_id: Callable[[], str], *, within: timedelta = timedelta(hours=1)) -> None:
        self._new_id = new_id
        self._within = within

    def steps(self, call: Escalation, tenant: str, conversation: str, message: str | None, now: int) -> list[Step]:
        """Return the steps; while an escalation is unresolved, the same key is only counted."""
        reason = REASONS.get(call.reason, _UNLISTED)
        facts = {name: value for name, value in call._asdict().items() if value is not None and name != "key"}
        facts |= {"conversation": conversation}
        steps: list[Step] = []
        if reason.opens_case:
            steps.append(Step("case_add", self._case(call, reason, tenant, conversation, message, now)))
        if reason.notifies:
            notice = {
                "id": self._new_id(), "tenant": tenant, "key": call.key, "reason": call.reason, "at": now
            }  # fmt: skip
            steps.append(Step("notice_add", {**notice, "facts": orjson.dumps(facts).decode()}))
        return steps

    def _case(
        self, call: Escalation, reason: EscalationReason, tenant: str, conversation: str, message: str | None, now: int
    ) -> dict[str, object]:
        facts = {"issue": call.issue, "squad": call.squad, "speaker": call.speaker, "text": call.text}
        return {
            "id": self._new_id(),
            "tenant": tenant,
            "reason": call.reason,
            "key": call.key,
            "conversation": conversation,
            "workflow": call.workflow,
            "message": message,
            "at": now,
            "deadline_at": now + micros(self._within) if reason.has_deadline else None,
            "facts": orjson.dumps(facts).decode(),
        }
