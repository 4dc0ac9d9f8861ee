"""What the rules understand, measured on messages of several authors, and held there.

`held-out` was written before the grammar, by its author; `third` by somebody else, measured once unseen and
then studied. A figure on studied messages is a floor against regressions, no promise for an unseen chat.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tidings.inbound.language.confidence import MEASURED, VERDICTS
from tidings.inbound.language.evaluation import Score, evaluate, load, main
from tidings.inbound.language.rules import RulesMind

STUDIED = ("tuning", "tuning-2", "tuning-3", "third")
CORPUS = Path(__file__).parents[1] / "corpora" / "inbound"


@pytest.fixture(scope="module")
def held_out() -> Score:
    return asyncio.run(evaluate(RulesMind(), load(CORPUS, "held-out")))


@pytest.fixture(scope="module")
def tuning() -> Score:
    """All that the grammar was mended on, by four authors."""
    cases = [case for part in STUDIED for case in load(CORPUS, part)]
    return asyncio.run(evaluate(RulesMind(), cases))


def test_the_held_out_messages_are_understood(held_out: Score) -> None:
    """D9, D10: at least 300 requests and 4,000 others; recall, parameters right, false alarms."""
    assert len(held_out.of(requests=True)) >= 300
    assert len(held_out.of(requests=False)) >= 4_000

    assert held_out.recall >= 0.98, held_out.report(errors=False)
    assert held_out.right >= 0.95, held_out.report(errors=False)
    assert held_out.false_alarms <= 0.002, held_out.report(errors=False)
    assert held_out.wrong_bookings <= 0.01, held_out.report(errors=False)


def test_the_tuning_messages_are_understood(tuning: Score) -> None:
    """What the grammar was written for stays understood; never quoted alone."""
    assert tuning.recall >= 0.99, tuning.report(errors=True)
    assert tuning.right >= 0.985, tuning.report(errors=True)
    assert tuning.false_alarms <= 0.002, tuning.report(errors=True)
    assert tuning.wrong_bookings <= 0.002, tuning.report(errors=True)


def test_the_fourth_authors_messages_stay_understood() -> None:
    """Measured once unseen (see docs/reference/shift-language.md), then studied: a floor, not a promise."""
    fourth = asyncio.run(evaluate(RulesMind(), load(CORPUS, "fourth")))

    assert fourth.recall >= 0.91, fourth.report(errors=True)
    assert fourth.right >= 0.88, fourth.report(errors=True)
    assert fourth.wrong_bookings <= 0.023, fourth.report(errors=True)
    assert fourth.false_alarms <= 0.014, fourth.report(errors=True)


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
