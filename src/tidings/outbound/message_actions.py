"""The explanation of one message, and the actions allowed in its state."""

from __future__ import annotations

from ..model.task import TRANSITIONS, TaskState
from ..store.port import Row, Store
from .explanation import Explanation, load_explanation
from .messages import MessageService
from .receipts.base import ReceiptStatus
from .receipts.delivery_status import describe_receipts, overall_status

_KERNEL_STATE = {"sent": TaskState.DONE, "skipped": TaskState.CANCELLED}


async def explain_message(store: Store, messages: MessageService, id_: str, *, tenant: str = "default") -> Explanation:
    """Explain why a message waits, or its outcome."""
    row = await messages.find(id_, tenant=tenant)
    history = await store.read("history_of", task=row["task"])
    found = await load_explanation(store, row, history, is_configured=messages.knows(row["channel"]))
    return with_receipts(found, await store.read("receipt_of", task=row["task"]))


def with_receipts(found: Explanation, receipts: list[Row]) -> Explanation:
    """The explanation with the provider's receipts added. Pure."""
    words = describe_receipts(receipts)
    if words is None:
        return found
    if overall_status(receipts) is not ReceiptStatus.UNDELIVERED:
        return found._replace(answer=f"{found.answer}; {words}")
    remedy = found.remedy or "it is not resent automatically: fix the cause, then send it again"
    return found._replace(answer=f"{found.answer}; {words}", remedy=remedy)


def allowed_actions(state: str) -> tuple[str, ...]:
    """The actions allowed in this state; nothing else is shown or accepted."""
    kernel_state = _KERNEL_STATE.get(state) or TaskState(state)
    if TaskState.CANCELLED not in TRANSITIONS.get(kernel_state, frozenset()):
        return ()
    match kernel_state:
        case TaskState.PENDING:
            return ("reschedule", "cancel")
        case TaskState.PROCESSING:
            return ("cancel",)
        case _:
            return ("retry", "discard")
