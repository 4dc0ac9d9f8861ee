"""Measure how well chat messages are understood: recall, correct parameters, false alarms.

    python -m tools.shift_language.evaluate tests/corpora/inbound tuning
    python -m tools.shift_language.evaluate tests/corpora/inbound tuning-2 --errors

A held-out part is measured, not studied: its errors are listed only with `--errors`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tidings.inbound.domain import Intent, Interpreter, InterpreterContext, ShiftAction, ShiftRequest, Speaker
from tidings.inbound.language.rule_interpreter import RuleInterpreter
from tidings.model.time import instant

ZONE = "America/New_York"
SQUADS = ("34", "35", "42", "43", "54")
STARTS_AT = 50  # confidence at which a request starts a workflow
_CHATTER_AT = "2026-01-03 21:08"
_CHATTER_SQUAD = "43"


@dataclass(frozen=True, slots=True)
class Case:
    """A message and what it asks for; nothing, if it is none of the calendar's business."""

    scene: InterpreterContext
    expected: frozenset[ShiftRequest]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a mind made of a case."""

    case: Case
    intent: Intent
    requests: frozenset[ShiftRequest]
    is_read_back: bool = False  # before it is booked

    @property
    def is_taken(self) -> bool:
        """Would it start a workflow?"""
        return bool(self.intent.is_request) and self.intent.confidence >= STARTS_AT

    @property
    def is_right(self) -> bool:
        return self.is_taken and self.requests == self.case.expected

    @property
    def is_misread(self) -> bool:
        """Something complete that nobody asked for."""
        return self.is_taken and any(None not in request for request in self.requests - self.case.expected)

    @property
    def is_wrong_booking(self) -> bool:
        """It would be booked without a question: worse than not understood."""
        return self.is_misread and not self.is_read_back


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one part."""

    answers: Sequence[Answer] = field(repr=False)

    def of(self, *, requests: bool) -> list[Answer]:
        """The answers to the messages that ask for something, or to the others."""
        return [answer for answer in self.answers if bool(answer.case.expected) is requests]

    @property
    def recall(self) -> float:
        return _share(self.of(requests=True), lambda answer: answer.is_taken)

    @property
    def right(self) -> float:
        """Messages of which every request was understood in every parameter."""
        return _share(self.of(requests=True), lambda answer: answer.is_right)

    @property
    def misread(self) -> float:
        return _share(self.of(requests=True), lambda answer: answer.is_misread)

    @property
    def read_back(self) -> float:
        """Of the messages that ask for something, those that are read back before they are booked."""
        return _share(self.of(requests=True), lambda answer: answer.is_taken and answer.is_read_back)

    @property
    def wrong_bookings(self) -> float:
        return _share(self.of(requests=True), lambda answer: answer.is_wrong_booking)

    @property
    def false_alarms(self) -> float:
        return _share(self.of(requests=False), lambda answer: answer.is_taken)

    def report(self, *, errors: bool) -> str:
        """The figures, and the errors one by one if wanted."""
        asked, others = self.of(requests=True), self.of(requests=False)
        unsure = sum(answer.intent.is_request is None for answer in others)
        lines = [
            f"requests      {len(asked):6}   recall {self.recall:.3f}   parameters right {self.right:.3f}"
            f"   read back {self.read_back:.3f}   misread {self.misread:.3f}"
            f"   wrong bookings {self.wrong_bookings:.4f}",
            f"other         {len(others):6}   false alarms {self.false_alarms:.4f}   don't know {unsure}",
        ]
        return "\n".join([*lines, *(self._errors() if errors else [])])

    def _errors(self) -> Iterator[str]:
        for answer in self.answers:
            if answer.is_right if answer.case.expected else not answer.is_taken:
                continue
            yield f"- {answer.case.scene.text}"
            wanted, got = _spelt(answer.case.expected), _spelt(answer.requests)
            yield f"    wanted {wanted}; got {got} ({answer.intent.reason})"

    def grounds(self) -> dict[str, tuple[int, int]]:
        """For each reason the rules give: how often it was given, and how often a request was behind it."""
        given = Counter(answer.intent.reason for answer in self.answers)
        behind = Counter(answer.intent.reason for answer in self.answers if answer.case.expected)
        return {reason: (count, behind[reason]) for reason, count in given.items()}


def load(folder: Path, part: str) -> list[Case]:
    """The cases of one part, `tuning` or `held-out`."""
    cases = list(_requests(folder / f"requests-{part}.txt"))
    at = _instant(_CHATTER_AT)
    for name in ("chatter", "unrelated"):
        if not (folder / f"{name}-{part}.txt").exists():
            continue
        cases += [Case(_scene(at, _CHATTER_SQUAD, line), frozenset()) for line in _lines(folder / f"{name}-{part}.txt")]
    return cases


async def evaluate(mind: Interpreter, cases: Sequence[Case]) -> Score:
    """Ask a mind about every case."""
    answers = []
    for case in cases:
        intent = await mind.intent(case.scene)
        if not intent.is_request or intent.confidence < STARTS_AT:
            answers.append(Answer(case, intent, frozenset()))
            continue
        found = await mind.extract(case.scene)
        answers.append(Answer(case, intent, frozenset(found.requests), found.is_loose))
    return Score(answers)


def _share(answers: Sequence[Answer], is_so: Callable[[Answer], bool]) -> float:
    return sum(is_so(answer) for answer in answers) / len(answers) if answers else 0.0


def _requests(path: Path) -> Iterator[Case]:
    at = 0
    for line in _lines(path):
        if line.startswith("@ "):
            at = _instant(line[2:])
            continue
        said, wanted = line.split(" => ")
        squad, text = said.split(": ", 1)
        yield Case(_scene(at, squad, text), frozenset(_request(each) for each in wanted.split(";")))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield line.strip()


def _request(text: str) -> ShiftRequest:
    action, *slots = text.split()
    squad, date, start, end = (None if slot == "-" else slot for slot in slots)
    return ShiftRequest(ShiftAction(action), squad, date, start, end)


def _scene(at: int, squad: str, text: str) -> InterpreterContext:
    return InterpreterContext(at, ZONE, SQUADS, Speaker("1", "Sam", squad, "officer"), text)


def _instant(text: str) -> int:
    return instant(datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo(ZONE)))


def _spelt(requests: frozenset[ShiftRequest]) -> str:
    return "; ".join(sorted(" ".join(slot or "-" for slot in request) for request in requests)) or "nothing"


def main(arguments: Sequence[str]) -> str:
    """Measure the rules on one part of a folder."""
    folder, part = Path(arguments[0]), arguments[1]
    score = asyncio.run(evaluate(RuleInterpreter(), load(folder, part)))
    table = [f"{count:6} {behind:6}  {reason}" for reason, (count, behind) in sorted(score.grounds().items())]
    return "\n".join([f"rules on {part}", score.report(errors="--errors" in arguments), *table])


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]) + "\n")
