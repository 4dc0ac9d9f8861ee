"""The features of the classifier: a message as a row of tokens, neighboring words and other properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..domain import ShiftAction
from .moods import mood
from .scanner import ScannedText
from .shift_words import Shift
from .spans import Item, is_mark, join
from .tokens import Act, ClockSpan, DayMention, LocalMoment, Mark, Marked, ParserContext, SquadMention, TextToken, Word

MENTIONED = (DayMention, ClockSpan, Shift, SquadMention)
_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+")
_PAUSES = (Mark.COMMA, Mark.PAUSE, Mark.DASH)
_OWN, _OTHER = "<own>", "<other>"
_LONGEST = 3  # words in a phrase
_CLAUSE_ENDS = frozenset({".", ",", "?", "but", "and", "so", "then", "because"})
_WE = frozenset({"we", "us", "our"})
_TIMES = frozenset({"<day>", "<hours>", "<shift>"})
_HOURS = frozenset({"<hours>", "<shift>"})


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
        return (place for place, item in enumerate(self.items) if isinstance(item, MENTIONED))


def build_token_row(text: str, scanned: ScannedText, setting: ParserContext) -> TokenRow:
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
            items.extend(join(pieces, setting.now).items)
            moods.update(_moods(text[begin:place].strip(), asks=is_mark(piece, Mark.ASKED)))
        items.extend([piece] if piece else [])
        begin, pieces = place + 1, []
    tokens = [FeatureToken(word, i) for i, item in enumerate(items) for word in _words(item, setting)]
    return TokenRow(items, tokens, frozenset(moods), setting.squad, setting.now)


def _moods(said: str, *, asks: bool) -> Iterator[str]:
    felt = mood(said, ends_asking=asks)._asdict()
    return (name for name, is_so in felt.items() if is_so)


def _words(item: Item, setting: ParserContext) -> Sequence[str]:
    """Return the tokens of an item."""
    match item:
        case DayMention():
            return ["<day>"]
        case ClockSpan():
            return ["<hours>"]
        case Shift():
            return ["<shift>"]
        case SquadMention():
            return [_OWN if item.name == setting.squad else _OTHER]
        case Word():
            return [item.text]
        case Act():
            return [_squad(word, setting) for word in _WORDS.findall(item.written)]
        case Marked():
            return [_mark(item)]
        case _:
            return ["<time>"]


def _squad(word: str, setting: ParserContext) -> str:
    if not word.isdigit():
        return word
    return _OWN if word == setting.squad else _OTHER if word in setting.squads else "<number>"


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


def message_features(row: TokenRow) -> list[str]:
    words = ["^", *(token.text for token in row.tokens if token.text not in {".", ","}), "$"]
    there = set(words)
    when = "timed" if there & _TIMES else "timeless"
    found = {f"act {item.action} {item.is_plain}" for item in row.items if isinstance(item, Act)}
    found |= {f"mood {name}" for name in row.moods}
    found |= {
        " ".join(words[i : i + length]) for length in range(1, _LONGEST + 1) for i in range(len(words) - length + 1)
    }
    found |= {f"{word} {when}" for word in there if not word.startswith("<")}
    found |= {
        f"has day {'<day>' in there} hours {bool(there & _HOURS)}",
        f"has own {'<own>' in there} other {'<other>' in there} we {bool(there & _WE)}",
        f"length {min(len(words) // 4, 6)}",
        "always",
    }
    return sorted(found)


def mention_features(row: TokenRow, place: int, action: ShiftAction) -> list[str]:
    """Return the features of a mentioned day, hours or squad."""
    return sorted(set(_of_mention(row, place, action)))


def _of_mention(row: TokenRow, place: int, action: ShiftAction) -> Iterator[str]:
    words = [token.text for token in row.tokens]
    at = next(i for i, token in enumerate(row.tokens) if token.place == place)
    kind, name = _kind(row.items[place]), words[at]
    before, after = ["^^", "^", *words[:at]], [*words[at + 1 :], "$", "$$"]
    one, two, then, later = before[-1], before[-2], after[0], after[1]
    yield from (f"{kind}", f"{kind} {name}", f"{kind} of {action}")
    yield from (f"{kind} < {one}", f"{kind} < {two} {one}", f"{kind} > {then}", f"{kind} > {then} {later}")
    yield from (f"{kind} {one} _ {then}", f"{kind} of {action} < {one}", f"{kind} of {action} > {then}")
    yield f"{kind} of {action} < {two} {one}"
    first, last = _clause(words, at)
    yield from (f"{kind} in {word} _" for word in words[first:at])
    yield from (f"{kind} in _ {word}" for word in words[at + 1 : last + 1])
    yield f"{kind} opens {words[first - 1] if first else '^'}"
    yield f"{kind} ends {words[last + 1] if last + 1 < len(words) else '$'}"
    yield f"{kind} {_acts(row, {row.tokens[i].place for i in range(first, last + 1)}, action)}"
    same = [i for i in row.mentions() if _kind(row.items[i]) == kind]
    rank = same.index(place)
    last_one = "last" if rank == len(same) - 1 else "middle"
    yield f"{kind} {'only' if len(same) == 1 else 'first' if not rank else last_one} of {min(len(same), 3)}"
    if kind == "squad":
        yield from _of_squad(row, place, action, name, words, at, rank, len(same))
    elif kind == "day":
        with_hours = [i for i in same if _has_hours(row, i)]
        yield f"day with hours {place in with_hours}, another {bool(set(with_hours) - {place})}"


def _of_squad(
    row: TokenRow, place: int, action: ShiftAction, name: str, words: Sequence[str], at: int, rank: int, count: int
) -> Iterator[str]:
    before, after = bool(_WE & set(words[:at])), bool(_WE & set(words[at + 1 :]))
    yield f"squad {name} of {action}, we before {before} after {after}"
    yield f"squad {name} of {action}, {rank} of {min(count, 3)}"
    act = next((i for i, item in enumerate(row.items) if isinstance(item, Act) and item.action), None)
    if act is not None:
        yield f"squad {name} of {action}, {'before' if place < act else 'after'} act, we before {before}"


def _clause(words: Sequence[str], at: int) -> tuple[int, int]:
    first = last = at
    while first > 0 and words[first - 1] not in _CLAUSE_ENDS:
        first -= 1
    while last + 1 < len(words) and words[last + 1] not in _CLAUSE_ENDS:
        last += 1
    return first, last


def _acts(row: TokenRow, clause: set[int], action: ShiftAction) -> str:
    """Describe the acts in the clause of a mention, and whether the action occurs elsewhere."""
    acts = [(i, item.action) for i, item in enumerate(row.items) if isinstance(item, Act) and item.action]
    here = {wanted for i, wanted in acts if i in clause}
    elsewhere = any(wanted is action for i, wanted in acts if i not in clause)
    return f"acts {'same' if action in here else 'other' if here else 'none'}, elsewhere {elsewhere}"


def _has_hours(row: TokenRow, place: int) -> bool:
    following = row.items[place + 1] if place + 1 < len(row.items) else None
    return following is not None and _kind(following) == "hours"


def _kind(item: object) -> str:
    if isinstance(item, DayMention):
        return "day"
    if isinstance(item, SquadMention):
        return "squad"
    return "hours" if isinstance(item, ClockSpan | Shift) else "other"
