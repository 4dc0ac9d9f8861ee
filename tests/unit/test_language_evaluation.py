"""What the rules understand, measured on messages of several authors, and held there.

`held-out` was written before the grammar, by its author, and no weight is fitted on it; `third` to `sixth`
are by others, each measured once unseen and then studied; of `seventh` nobody has seen more than its figures.
A figure on studied messages is a floor against regressions, no promise for an unseen chat; what to expect
there is in docs/reference/shift-language.md. Of the unrelated lines every fifth, and of the older parts every
second message is read here; the evaluation's own command reads them all.
"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import pytest
from tools.shift_language.evaluate import Case, Score, evaluate, load, main

from tidings.inbound.language.confidence import MEASURED, VERDICTS
from tidings.inbound.language.rule_interpreter import RuleInterpreter

pytestmark = pytest.mark.slow

STUDIED = ("tuning", "tuning-2", "tuning-3", "tuning-4", "third", "fourth", "fifth", "sixth")
CORPUS = Path(__file__).parents[1] / "corpora" / "inbound"
_OLDER = ("tuning", "tuning-2", "tuning-3", "third")
_UNRELATED_READ = 5  # one of so many


@pytest.fixture(scope="module")
def held_out() -> Score:
    return _read("held-out")


@pytest.fixture(scope="module")
def tuning() -> Score:
    """All that the grammar was mended and the weights fitted on."""
    return Score([answer for part in STUDIED for answer in _read(part).answers])


@cache
def _read(part: str) -> Score:
    """Each part is read once, by whoever asks first."""
    return asyncio.run(evaluate(RuleInterpreter(), _sample(part)))


def _sample(part: str) -> list[Case]:
    cases = load(CORPUS, part)
    unrelated = CORPUS / f"unrelated-{part}.txt"
    count = sum(not line.startswith("#") for line in unrelated.open()) if unrelated.exists() else 0
    step = 2 if part in _OLDER else 1
    return [*cases[: len(cases) - count : step], *cases[len(cases) - count :: _UNRELATED_READ]]


def test_the_held_out_messages_are_understood(held_out: Score) -> None:
    """D9, D10: at least 300 requests and 4,000 others; recall, parameters right, false alarms."""
    assert len(held_out.of(requests=True)) >= 300
    assert sum(not case.expected for case in load(CORPUS, "held-out")) >= 4_000

    assert held_out.recall >= 0.97, held_out.report(errors=False)
    assert held_out.right >= 0.94, held_out.report(errors=False)
    assert held_out.false_alarms <= 0.005, held_out.report(errors=False)
    assert held_out.wrong_bookings <= 0.007, held_out.report(errors=False)


def test_an_author_nobody_has_studied_is_understood() -> None:
    """D9, D10: `seventh` is the bar's own case; its errors are never listed, so that it stays unseen."""
    score = _read("seventh")

    assert score.recall >= 0.93, score.report(errors=False)
    assert score.right / score.recall >= 0.93, score.report(errors=False)
    assert score.false_alarms <= 0.005, score.report(errors=False)
    assert score.wrong_bookings <= 0.01, score.report(errors=False)


@pytest.mark.parametrize("part", STUDIED)
def test_studied_messages_stay_understood(part: str) -> None:
    """A floor for each author; never quoted alone."""
    score = _read(part)

    assert score.recall >= 0.97, score.report(errors=True)
    assert score.right >= 0.94, score.report(errors=True)
    assert score.false_alarms <= 0.005, score.report(errors=True)
    assert score.wrong_bookings <= 0.005, score.report(errors=True)


def test_the_two_parts_share_no_message(held_out: Score, tuning: Score) -> None:
    """A message in both would be tuned on. Short ones ("ok") are everybody's."""
    seen, unseen = ({a.case.scene.text.lower() for a in score.answers} for score in (tuning, held_out))

    assert len(seen & unseen) <= 10


def test_confidence_is_what_was_measured(tuning: Score) -> None:
    """D9: bands come from a table, and the table from the tuning messages, with one doubt on each side."""
    for ground, verdict in VERDICTS.items():
        count, requests = tuning.grounds().get(f"it {ground}", (0, 0))
        right = requests if verdict else count - requests
        if verdict is None:
            assert 30 <= MEASURED[ground] < 50
        else:
            assert abs(MEASURED[ground] - 100 * (right + 1) / (count + 2)) <= 3, ground


def test_the_score_is_printed_with_its_errors(tmp_path: Path) -> None:
    """Somebody who changes the grammar sees what it costs."""
    asked = "42: no crew tonight => no_crew 42 20260103 1800 0600\n42: ship ahoy => add 42 - - -\n"
    (tmp_path / "requests-mine.txt").write_text(f"@ 2026-01-03 21:08\n{asked}")
    (tmp_path / "chatter-mine.txt").write_text("who is on tonight?\n")

    text = main([str(tmp_path), "mine", "--errors"])

    assert "recall 0.500" in text and "false alarms 0.0000" in text
    assert "- ship ahoy\n    wanted add 42 - - -; got nothing" in text
