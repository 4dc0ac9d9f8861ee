"""Two readings of one message: what both clearly say is sure, what only one says is loose (D9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tools.shift_language.evaluate import SQUADS, load
from tools.shift_language.train import fit, study

from tidings.inbound.language.agreeing import agree
from tidings.inbound.language.grammar import Accord, Heard, Setting, moment_of, read
from tidings.inbound.language.shift_words import shift_words
from tidings.inbound.language.weighing import Weighed
from tidings.inbound.language.weights import parsed, printed, shipped
from tidings.inbound.words import Action, Request
from tidings.model.time import SECOND

NIGHT = Request(Action.NO_CREW, "42", "20270115", "1800", "0600")  # of Friday 15 January 2027
DAY = NIGHT._replace(start="0600", end="1800")
CORPUS = Path(__file__).parents[1] / "corpora" / "inbound"


def _heard(text: str) -> Heard:
    now = moment_of(1_800_000_000 * SECOND - 4 * 3600 * SECOND, "UTC")
    return read(text, Setting(now, "42", SQUADS, shift_words()))


def _weighed(likely: float, *requests: Request, margin: float = 1.0) -> Weighed:
    shares: Mapping[Action, float] = {Action.NO_CREW: likely, Action.ADD: 0.0, Action.REMOVE: 0.0}
    return Weighed(shares, requests, margin)


@pytest.mark.parametrize(
    ("text", "second", "accord", "requests"),
    [
        ("no crew fri night", _weighed(0.99, NIGHT), Accord.SURE, {NIGHT}),
        ("no crew fri night", _weighed(0.6, NIGHT), Accord.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.99, NIGHT, margin=0.6), Accord.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.99, DAY), Accord.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.4), Accord.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.05), Accord.LOOSE, {NIGHT}),
        ("we have no crew fri", _weighed(0.05), Accord.LOOSE, {NIGHT._replace(start=None, end=None)}),
        ("no crew fri night beats karaoke", _weighed(0.05), Accord.NONE, set()),
        ("no crew fri", _weighed(0.4), Accord.NONE, set()),
        ("no crew fri day and fri night", _weighed(0.99, NIGHT), Accord.LOOSE, {NIGHT}),
        ("fri night went poof", _weighed(0.8, NIGHT), Accord.LOOSE, {NIGHT}),
        ("fri night went poof", _weighed(0.6, NIGHT), Accord.SURE, set()),
        ("maybe no crew fri night", _weighed(0.8, NIGHT), Accord.SURE, set()),
        ("who likes cake", _weighed(0.01), Accord.SURE, set()),
    ],
)
def test_how_two_readings_agree(text: str, second: Weighed, accord: Accord, requests: set[Request]) -> None:
    """Sure only if both find the same, clearly; what one denies is nothing, unless nothing else is said."""
    heard = agree(_heard(text), second)

    assert (heard.accord, set(heard.requests)) == (accord, requests)


def test_several_things_in_one_message_have_to_be_clearer() -> None:
    """They are easily mixed up."""
    a_list, both = _heard("no crew fri 0600-1800 and 1800-0600"), (DAY, NIGHT)
    a_tale = replace(a_list, noise=2)

    assert agree(a_list, _weighed(0.9, *both, margin=0.9)).accord is Accord.SURE
    assert agree(a_tale, _weighed(0.9, *both, margin=0.9)).accord is Accord.LOOSE
    assert agree(a_tale, _weighed(0.99, *both, margin=0.99)).accord is Accord.SURE


def test_the_same_messages_give_the_same_weights() -> None:
    """Fitting is deterministic, and the table keeps what was fitted."""
    lessons = study(load(CORPUS, "tuning-4")[:40])

    first, second = fit([lessons]), fit([lessons])

    assert first == second
    assert parsed(printed(first)) == first


def test_the_shipped_weights_know_their_words() -> None:
    """What they say can be read off the table: "nobody" speaks for no crew, "add us" for adding."""
    weights = shipped().message

    assert weights["nobody"][0] > weights["nobody"][1]
    assert weights["add"][1] > weights["add"][0]
    assert weights["off"][2] > weights["off"][1]
