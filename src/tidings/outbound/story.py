"""The story of one message: why it stands where it stands, and what a person may do with it now."""

from __future__ import annotations

from ..model.task import LEGAL, State
from ..store.port import Store
from .messages import Messages
from .why import Why, why

_KERNEL_STATE = {"sent": State.DONE, "skipped": State.CANCELLED}


async def why_of(store: Store, messages: Messages, id_: str, *, tenant: str = "default") -> Why:
    """What one message waits for, or what became of it."""
    row = await messages.find(id_, tenant=tenant)
    history = await store.read("history_of", task=row["task"])
    return await why(store, row, history, is_configured=messages.knows(row["channel"]))


def actions(state: str) -> tuple[str, ...]:
    """What a person may ask of a message in this state (A6); nothing else is shown or accepted."""
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
