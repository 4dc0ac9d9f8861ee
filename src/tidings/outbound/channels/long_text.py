"""Texts that are longer than a provider takes: refused, or split into several messages.

Invariant: the parts put together again are the text, but for the white space at which it was split. When a
later part fails the earlier ones are already there, so the attempt as a whole is in doubt: a plain retry
would send them twice without saying so.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from ...model.errors import Invalid
from ...model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown

MOST_PARTS = 10

_JOINERS = frozenset("\u200d\ufe0e\ufe0f")  # they belong to the character before them
_BREAKS = ("\n\n", "\n", " ")  # where a text is split, best first

Part = TypeVar("Part")


class LongText(StrEnum):
    """What happens to a text that is too long."""

    REFUSE = "refuse"
    SPLIT = "split"


def long_text(value: object) -> LongText:
    """Reader of the option."""
    if value not in tuple(LongText):
        raise ValueError("it must be 'refuse' or 'split'")
    return LongText(str(value))


def parts_of(text: str, most: int, rule: LongText) -> list[str]:
    """The text, whole or in parts of at most `most` characters; raises Invalid when it cannot go out."""
    if len(text) <= most:
        return [text]
    if rule is LongText.REFUSE:
        remedy = f"use at most {most:,}, or set long_text = 'split' for the channel"
        raise Invalid(f"the text has {len(text):,} characters", field="text", remedy=remedy)
    parts: list[str] = []
    rest = text
    while len(rest) > most and len(parts) < MOST_PARTS:
        place = _place(rest, most)
        parts.append(rest[:place].rstrip())
        rest = rest[place:].lstrip()
    parts = [part for part in (*parts, rest.rstrip()) if part]
    if len(parts) > MOST_PARTS or len(parts[-1]) > most:
        problem = f"the text has {len(text):,} characters, more than {MOST_PARTS} messages hold"
        raise Invalid(problem, field="text", remedy=f"use at most about {MOST_PARTS * most:,}")
    return parts


def _place(text: str, most: int) -> int:
    """Where to cut: after the last paragraph, line or word in the second half, else between characters."""
    for mark in _BREAKS:
        place = text.rfind(mark, most // 2, most + 1)
        if place > 0:
            return place
    place = most
    while place > most // 2 and _continues(text[place]):
        place -= 1
    return place


def _continues(character: str) -> bool:
    return character in _JOINERS or unicodedata.combining(character) != 0


async def send_parts(parts: Sequence[Part], send: Callable[[Part], Awaitable[Outcome]]) -> Outcome:
    """Send one after the other; the receipt has all names, in order."""
    receipts: list[str] = []
    for number, part in enumerate(parts):
        outcome = await send(part)
        if not isinstance(outcome, Done):
            return outcome if number == 0 else _broken_off(number, len(parts), receipts, outcome)
        if outcome.receipt is not None:
            receipts.append(outcome.receipt)
    return Done(" ".join(receipts) or None)


def _broken_off(sent: int, total: int, receipts: Sequence[str], outcome: Outcome) -> Unknown:
    match outcome:
        case Retry(reason=why) | Reject(reason=why) | Offline(reason=why) | Unknown(evidence=why):
            return _in_part(sent, total, receipts, why)
        case Defer(why=why) | Skip(why=why):
            return _in_part(sent, total, receipts, why)
        case Done():
            raise AssertionError("handled by the caller")


def _in_part(sent: int, total: int, receipts: Sequence[str], why: str) -> Unknown:
    known = f" ({' '.join(receipts)})" if receipts else ""
    return Unknown(f"{sent} of {total} parts were sent{known}, the next was not: {why}")
