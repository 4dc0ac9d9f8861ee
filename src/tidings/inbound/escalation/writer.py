"""Writes the case and the notice of an escalation in the transaction that caused it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import orjson

from ...model.time import micros
from ...store.port import Step
from .reasons import REASONS, Escalation, EscalationReason


class EscalationWriter:
    """Builds the steps of escalations. `within` is the deadline for claiming a case."""

    def __init__(self, new_id: Callable[[], str], *, within: timedelta = timedelta(hours=1)) -> None:
        self._new_id = new_id
        self._within = within

    def steps(self, call: Escalation, tenant: str, conversation: str, message: str | None, now: int) -> list[Step]:
        """Return the steps; while an escalation is unresolved, the same key is only counted."""
        reason = REASONS.get(call.reason, EscalationReason("see: tidings cases list"))
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
