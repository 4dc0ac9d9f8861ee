"""Split or refuse texts that are too long for a provider.

Invariant: the joined parts are the text, except for whitespace at the cuts. If a later part fails, earlier
ones have been sent, so the outcome of the whole message is unknown: a retry would duplicate them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from ...model.errors import Invalid
from ...model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown

MAX_PARTS = 10

_JOINERS = frozenset("\u200d\ufe0e\ufe0f")  # part of the preceding character
_BREAKS = ("\n\n", "\n", " ")  # preferred cuts, best first

Part = TypeVar("Part")


class LongText(StrEnum):
    """What to do with a text that is too long."""

    REFUSE = "refuse"
    SPLIT = "split"


def parts_of(text: str, most: int, rule: LongText) -> list[str]:
    """The text, whole or in parts of at most `most` characters; raises Invalid if it is too long."""
    if len(text) <= most:
        return [text]
    if rule is LongText.REFUSE:
        remedy = f"use at most {most:,}, or set long_text = 'split' for the channel"
        raise Invalid(f"the text has {len(text):,} characters", field="text", remedy=remedy)
    parts: list[str] = []
    rest = text
    while len(rest) > most and len(parts) < MAX_PARTS:
        place = _place(rest, most)
        parts.append(rest[:place].rstrip())
        rest = rest[place:].lstrip()
    parts = [part for part in (*parts, rest.rstrip()) if part]
    if len(parts) > MAX_PARTS or len(parts[-1]) > most:
        problem = f"the text has {len(text):,} characters, more than {MAX_PARTS} messages hold"
        raise Invalid(problem, field="text", remedy=f"use at most about {MAX_PARTS * most:,}")
    return parts


def _place(text: str, most: int) -> int:
    """The cut: after the last paragraph, line or word in the second half, else between characters."""
    for mark in _BREAKS:
        place = text.rfind(mark, most // 2, most + 1)
        if place > 0:
            return place
    place = most
    while place > most // 2 and (text[place] in _JOINERS or unicodedata.combining(text[place])):
        place -= 1
    return place


def part_id(id_: str, number: int) -> str:
    """The id of a part, counted from 0; the first has that of the message."""
    return f"{id_}.{number + 1}" if number else id_


async def send_parts(id_: str, parts: Sequence[Part], send: Callable[[Part, str], Awaitable[Outcome]]) -> Outcome:
    """Send the parts in order; the receipt has all their ids.

    `send` gets the request id of the part, for a proxy's log and the sandbox's ledger; providers ignore it.
    """
    receipts: list[str] = []
    for number, part in enumerate(parts):
        outcome = await send(part, part_id(id_, number))
        if not isinstance(outcome, Done):
            return outcome if number == 0 else _incomplete(number, len(parts), receipts, outcome)
        if outcome.receipt is not None:
            receipts.append(outcome.receipt)
    return Done(" ".join(receipts) or None)


def _incomplete(sent: int, total: int, receipts: Sequence[str], outcome: Outcome) -> Unknown:
    match outcome:
        case Retry(reason=why) | Reject(reason=why) | Offline(reason=why) | Unknown(evidence=why):
            pass
        case Defer(why=why) | Skip(why=why):
            pass
        case Done():
            raise AssertionError("handled by the caller")
    known = f" ({' '.join(receipts)})" if receipts else ""
    return Unknown(f"{sent} of {total} parts were sent{known}, the next was not: {why}")
