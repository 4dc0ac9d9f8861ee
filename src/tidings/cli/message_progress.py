"""Live progress of one message: a line that explains why it has not been sent yet."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

_INTERVAL = 0.1  # seconds between two reads
_FINAL = ("sent", "failed", "cancelled", "skipped", "expired")


async def follow(service: OutboundService, id_: str, *, as_json: bool) -> output.Row:
    """Wait until the message is final, and return it."""
    is_live = output.on_terminal() and not as_json
    status: Any = output.console().status("") if is_live else nullcontext()
    with status:
        row = await service.messages.show(id_)
        while row["state"] not in _FINAL:
            if is_live:
                status.update(output.quoted(output.readable((await service.why(id_)).answer)))
            await asyncio.sleep(_INTERVAL)
            row = await service.messages.show(id_)
    reason = await service.why(id_)
    if as_json:
        output.say_json({**row, "why": reason.answer})
    elif row["state"] == "sent":
        output.say(("✓ ", "green"), output.readable(reason.answer))
    else:
        output.say(("✗ ", "red"), output.readable(reason.answer), f"; {reason.remedy}" if reason.remedy else "")
    return row
