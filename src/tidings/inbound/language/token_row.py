"""A message as the row of tokens that the classifier reads: mentions by kind, and words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .moods import mood
from .scanner import ScannedText
from .shift_words import Shift
from .spans import Item, is_mark, join
from .tokens import Act, ClockSpan, DayMention, LocalMoment, Mark, Marked, SquadMention, TextToken, Word

MENTIONED = (DayMention, ClockSpan, Shift, SquadMention)
_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+")
_PAUSES = (Mark.COMMA, Mark.PAUSE, Mark.DASH)
_OWN, _OTHER = "<own>", "<other>"


class FeatureToken(NamedTuple):
    """A word, or the kind of a mention; `place` is the index of its item."""

    text: str
    place: int


class TokenRow(NamedTuple):
    """A message with its items (joined by `spans`) and the moods of its sentences."""

    items: Sequence[Item]
    tokens: Sequence[FeatureToken]
    moods: frozenset[str]
    own: str | None
    now: LocalMoment

    def mentions(self) -> Iterator[int]:
        """Return the places of days, hours and squads."""
        return (place for place, item in enumerate(self.items) if isinstance(item, MENTIONED))


def build_token_row(
    text: str, scanned: ScannedText, now: LocalMoment, own: str | None, squads: Sequence[str]
) -> TokenRow:
    """Build the row of a normalized and scanned text."""
    items: list[Item] = []
    moods: set[str] = set()
    begin = 0
    pieces: list[TextToken] = []
    ends: list[tuple[TextToken | None, int]] = [*scanned.pieces, (None, len(text))]
    for piece, place in ends:
        if piece is not None and not is_mark(piece, Mark.STOP, Mark.ASKED):
            pieces.append(piece)
            continue
        if pieces:
            items.extend(join(pieces, now).items)
            moods.update(_moods(text[begin:place].strip(), asks=is_mark(piece, Mark.ASKED)))
        items.extend([piece] if piece else [])
        begin, pieces = place + 1, []
    tokens = [FeatureToken(word, i) for i, item in enumerate(items) for word in _words(item, own, squads)]
    return TokenRow(items, tokens, frozenset(moods), own, now)


def _moods(said: str, *, asks: bool) -> Iterator[str]:
    felt = mood(said, ends_asking=asks)._asdict()
    return (name for name, is_so in felt.items() if is_so)


def _words(item: Item, own: str | None, squads: Sequence[str]) -> Sequence[str]:
    """Return the tokens of an item."""
    match item:
        case DayMention():
            return ["<day>"]
        case ClockSpan():
            return ["<hours>"]
        case Shift():
            return ["<shift>"]
        case SquadMention():
            return [_OWN if item.name == own else _OTHER]
        case Word():
            return [item.text]
        case Act():
            return [_squad(word, own, squads) for word in _WORDS.findall(item.written)]
        case Marked():
            return [_mark(item)]
        case _:
            return ["<time>"]


def _squad(word: str, own: str | None, squads: Sequence[str]) -> str:
    if not word.isdigit():
        return word
    return _OWN if word == own else _OTHER if word in squads else "<number>"


def _mark(marked: Marked) -> str:
    match marked.mark:
        case Mark.STOP:
            return "."
        case Mark.ASKED:
            return "?"
        case Mark.FOREIGN:
            return "<foreign>"
        case _:
            return "," if marked.mark in _PAUSES else marked.written
