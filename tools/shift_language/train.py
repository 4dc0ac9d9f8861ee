"""Train the weights of the second reading on labelled messages, and measure them on an author left out.

    python -m tools.shift_language.train tests/corpora/inbound                   writes weights.tsv
    python -m tools.shift_language.train tests/corpora/inbound --check           compares it instead
    python -m tools.shift_language.train tests/corpora/inbound --across fifth    measures on that author

Deterministic: the same messages give the same weights.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from tidings.inbound import language
from tidings.inbound.domain import ShiftRequest
from tidings.inbound.language.classifier import requests_from_mentions
from tidings.inbound.language.features import TokenRow, build_token_row, mention_features, message_features
from tidings.inbound.language.normalization import normalize
from tidings.inbound.language.parser import moment_of
from tidings.inbound.language.rule_interpreter import RuleInterpreter
from tidings.inbound.language.scanner import scan
from tidings.inbound.language.shift_words import Shift, hhmm, shift_words
from tidings.inbound.language.tokens import ClockSpan, DayMention, ParserContext, SquadMention
from tidings.inbound.language.weights import ACTIONS, FILE, Weights, parse_weights, sigmoid

from .evaluate import Case, evaluate, load

AUTHORS: Mapping[str, tuple[str, ...]] = {
    "first": ("tuning", "tuning-3", "tuning-4", "held-out"),
    "second": ("tuning-2",),
    "third": ("third",),
    "fourth": ("fourth",),
    "fifth": ("fifth",),
    "sixth": ("sixth",),
}
"""Who wrote which parts; the first wrote the grammar as well."""

_HELD_OUT = "held-out"  # what is shipped has never seen it
_RARE = 2  # messages: what fewer have says nothing
_ROUNDS = 8
_SPEED = 0.25
_SETTLED = 0.02  # an error so small teaches nothing
_SEEDS = (1, 2)
_LIGHT = 0.1  # weights below it are left out


class Lesson(NamedTuple):
    """Names, and what is true of them: for each action, or for a mention."""

    names: Sequence[str]
    truth: tuple[float, ...]


class Studied(NamedTuple):
    """What one part teaches."""

    messages: Sequence[Lesson]
    mentions: Sequence[Lesson]


def study(cases: Sequence[Case]) -> Studied:
    """The lessons of some messages."""
    messages: list[Lesson] = []
    mentions: list[Lesson] = []
    for case in cases:
        seen = _row(case)
        wanted = {request.action for request in case.expected}
        messages.append(Lesson(message_features(seen), tuple(float(action in wanted) for action in ACTIONS)))
        if len(wanted) == 1:
            mentions.extend(_mentions(seen, case.expected))
    return Studied(messages, mentions)


def fit(lessons: Sequence[Studied]) -> Weights:
    """The weights that explain the lessons."""
    messages = [lesson for each in lessons for lesson in each.messages]
    mentions = [lesson for each in lessons for lesson in each.mentions]
    of_mentions = {name: values[0] for name, values in _fitted(mentions, 1).items()}
    return parse_weights(format_weights(Weights(_fitted(messages, len(ACTIONS)), of_mentions)))


def format_weights(weights: Weights) -> str:
    """Format weights as a table."""
    lines = ["# Made by `python -m tools.shift_language.train`; change the messages, not this file."]
    lines += ["\t".join((name, *(f"{value:.2f}" for value in each))) for name, each in sorted(weights.message.items())]
    lines += [f"{name}\t{value:.2f}" for name, value in sorted(weights.mention.items())]
    return "\n".join(lines) + "\n"


def _row(case: Case) -> TokenRow:
    scene = case.scene
    now, squads = moment_of(scene.now, scene.timezone), tuple(scene.squads)
    setting = ParserContext(now, scene.speaker.squad, squads, shift_words())
    plain = normalize(scene.text)
    return build_token_row(plain, scan(plain, setting), setting)


def _mentions(seen: TokenRow, expected: frozenset[ShiftRequest]) -> Iterator[Lesson]:
    """Each mention with whether it belongs to what was wanted."""
    action = next(iter(expected)).action
    assert action is not None
    places = set(seen.mentions())
    hours = {(request.date, request.start, request.end) for request in expected}
    all_told = {(each.date, each.start, each.end) for each in requests_from_mentions(seen, action, places, [])}
    for place in sorted(places):
        item = seen.items[place]
        is_time = not isinstance(item, SquadMention)
        belongs = (is_time and hours == all_told) or _belongs(item, expected)
        yield Lesson(mention_features(seen, place, action), (float(belongs),))


def _belongs(item: object, expected: frozenset[ShiftRequest]) -> bool:
    match item:
        case SquadMention():
            return any(request.squad == item.name for request in expected)
        case DayMention():
            near = {f"{item.date + timedelta(days=days):%Y%m%d}" for days in (0, 7)}
            return any(request.date in near for request in expected)
        case Shift():
            start, end = (None if at is None else hhmm(at) for at in item.hours)
            return any(start == request.start or end == request.end for request in expected)
        case ClockSpan():
            return item.follows or any(
                _shows(request.start, item.start and item.start.at) and _shows(request.end, item.end and item.end.at)
                for request in expected
            )
        case _:
            return False


def _shows(wanted: str | None, at: int | None) -> bool:
    """Does a clock with twelve hours show the same?"""
    if wanted is None or at is None:
        return True
    return (int(wanted[:2]) % 12) * 60 + int(wanted[2:]) == at % 720


def _fitted(lessons: Sequence[Lesson], width: int) -> dict[str, tuple[float, ...]]:
    """Logistic regression, one lesson after the other, averaged over several orders."""
    counted = Counter(name for lesson in lessons for name in lesson.names)
    common = {name for name, count in counted.items() if count >= _RARE}
    plain = [Lesson([name for name in lesson.names if name in common], lesson.truth) for lesson in lessons]
    runs = [_run(plain, common, width, seed) for seed in _SEEDS]
    mean = {name: tuple(sum(run[name][i] for run in runs) / len(runs) for i in range(width)) for name in common}
    return {name: each for name, each in mean.items() if max(map(abs, each)) >= _LIGHT}


def _run(lessons: Sequence[Lesson], names: set[str], width: int, seed: int) -> dict[str, list[float]]:
    weights = {name: [0.0] * width for name in names}
    moved = {name: [0.01] * width for name in names}
    order = list(lessons)
    shuffle = random.Random(seed).shuffle
    for _ in range(_ROUNDS):
        shuffle(order)
        for lesson in order:
            for i in range(width):
                _learn(lesson, i, weights, moved)
    return weights


def _learn(lesson: Lesson, i: int, weights: dict[str, list[float]], moved: dict[str, list[float]]) -> None:
    error = sigmoid(sum(weights[name][i] for name in lesson.names)) - lesson.truth[i]
    if abs(error) < _SETTLED:
        return
    for name in lesson.names:
        moved[name][i] += error * error
        weights[name][i] -= _SPEED * error / sqrt(moved[name][i])


def across(folder: Path, authors: Sequence[str], *, errors: bool) -> Iterator[str]:
    """These authors' messages, each read with weights that never saw them. The phrases are as they are."""
    cases = {author: _cases(folder, parts) for author, parts in AUTHORS.items()}
    studied = {author: study(each) for author, each in cases.items()}
    others = study([case for case in _cases(folder, ("tuning",)) if not case.expected])
    for author in authors:
        weights = fit([others, *(lessons for other, lessons in studied.items() if other != author)])
        score = asyncio.run(evaluate(RuleInterpreter(weights=weights), cases[author]))
        yield f"{author}\n{score.report(errors=errors)}\n"


def _cases(folder: Path, parts: Sequence[str]) -> list[Case]:
    there = [part for part in parts if (folder / f"requests-{part}.txt").exists()]
    return [case for part in there for case in load(folder, part)]


def main(arguments: Sequence[str]) -> int:
    """Fit and write, compare with what is there, or measure across authors."""
    folder = Path(arguments[0])
    if "--across" in arguments:
        named = [author for author in arguments if author in AUTHORS]
        for line in across(folder, named or list(AUTHORS), errors="--errors" in arguments):
            sys.stdout.write(line)
            sys.stdout.flush()
        return 0
    shown = [[part for part in parts if part != _HELD_OUT] for parts in AUTHORS.values()]
    weights = fit([study(_cases(folder, parts)) for parts in shown])
    table = Path(language.__file__).parent / FILE
    if "--check" in arguments:
        is_same = table.read_text(encoding="utf-8") == format_weights(weights)
        sys.stdout.write(f"{FILE} is {'what' if is_same else 'NOT what'} the messages give\n")
        return int(not is_same)
    table.write_text(format_weights(weights), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
