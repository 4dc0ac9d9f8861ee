"""The story of one message: why it stands where it stands, and what a person may do with it now."""

from __future__ import annotations

from ..model.task import LEGAL, State
from ..store.port import Row, Store
from .messages import Messages
from .receipts.receipt import What
from .receipts.standing import delivery, in_words
from .why import Why, why

_KERNEL_STATE = {"sent": State.DONE, "skipped": State.CANCELLED}


async def why_of(store: Store, messages: Messages, id_: str, *, tenant: str = "default") -> Why:
    """What one message waits for, or what became of it."""
    row = await messages.find(id_, tenant=tenant)
    history = await store.read("history_of", task=row["task"])
    found = await why(store, row, history, is_configured=messages.knows(row["channel"]))
    return after_all(found, await store.read("receipt_of", task=row["task"]))


def after_all(found: Why, told: list[Row]) -> Why:
    """The answer, with what its provider told later. Pure."""
    words = in_words(told)
    if words is None:
        return found
    if delivery(told) is not What.UNDELIVERED:
        return found._replace(answer=f"{found.answer}; {words}")
    remedy = found.remedy or "it is not sent again by itself: mend the cause, and send it anew"
    return found._replace(answer=f"{found.answer}; {words}", remedy=remedy)


def actions(state: str) -> tuple[str, ...]:
    """What a person may ask of a message in this state; nothing else is shown or accepted."""
    kernel_state = _KERNEL_STATE.get(state) or State(state)
    if State.CANCELLED not in LEGAL.get(kernel_state, frozenset()):
        return ()
    match kernel_state:
        case State.PENDING:
            return ("reschedule", "cancel")
        case State.PROCESSING:
            return ("cancel",)
        case _:
            return ("retry", "discard")
