"""Waiting for one message: a live line that says why it has not been sent yet."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

_LOOK = 0.1  # seconds between two looks
_OVER = ("sent", "failed", "cancelled", "skipped", "expired")


async def follow(desk: OutboundService, id_: str, *, as_json: bool) -> output.Row:
    """Stay until it is over; gives the message as it then stands."""
    is_live = output.on_terminal() and not as_json
    status: Any = output.console().status("") if is_live else nullcontext()
    with status:
        row = await desk.messages.show(id_)
        while row["state"] not in _OVER:
            if is_live:
                status.update(output.quoted(output.spoken((await desk.why(id_)).answer)))
            await asyncio.sleep(_LOOK)
            row = await desk.messages.show(id_)
    reason = await desk.why(id_)
    if as_json:
        output.say_json({**row, "why": reason.answer})
    elif row["state"] == "sent":
        output.say(("✓ ", "green"), output.spoken(reason.answer))
    else:
        output.say(("✗ ", "red"), output.spoken(reason.answer), f"; {reason.remedy}" if reason.remedy else "")
    return row
