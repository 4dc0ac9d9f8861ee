"""Waiting for one message: a live line that says why it has not been sent yet."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from . import output
from .messages import explain

if TYPE_CHECKING:
    from ..app import App

_LOOK = 0.1  # seconds between two looks
_OVER = ("sent", "failed", "cancelled", "expired")


async def follow(app: App, id_: str, *, as_json: bool) -> output.Row:
    """Stay until it is over; gives the message as it then stands."""
    live: Any = nullcontext()
    if output.on_terminal() and not as_json:
        live = output.console().status("")
    with live:
        row = await app.messages.show(id_)
        while row["state"] not in _OVER:
            if output.on_terminal() and not as_json:
                live.update(f"[dim]{(await explain(app, id_)).answer.replace('[', '(')}[/]")
            await asyncio.sleep(_LOOK)
            row = await app.messages.show(id_)
    reason = await explain(app, id_)
    if as_json:
        output.say_json({**row, "why": reason.answer})
    elif row["state"] == "sent":
        output.say(("✓ ", "green"), reason.answer)
    else:
        output.say(("✗ ", "red"), reason.answer, *((f"; {reason.remedy}",) if reason.remedy else ()))
    return row
