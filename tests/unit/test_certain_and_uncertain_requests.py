"""Two interpretations of one message: requests in both are certain, requests in one are uncertain (D9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tools.shift_language.evaluate import SQUADS, load
from tools.shift_language.train import fit, format_weights, study

from tidings.inbound.domain import ShiftAction, ShiftRequest
from tidings.inbound.language.agreement import agree
from tidings.inbound.language.classifier import Classification
from tidings.inbound.language.parser import ParsedMessage, ParserAgreement, moment_of, parse_message
from tidings.inbound.language.shift_words import shift_words
from tidings.inbound.language.tokens import ParserContext
from tidings.inbound.language.weights import load_weights, parse_weights
from tidings.model.time import SECOND

NIGHT = ShiftRequest(ShiftAction.NO_CREW, "42", "20270115", "1800", "0600")  # of Friday 15 January 2027
DAY = NIGHT._replace(start="0600", end="1800")
CORPUS = Path(__file__).parents[1] / "corpora" / "inbound"


def _heard(text: str) -> ParsedMessage:
    now = moment_of(1_800_000_000 * SECOND - 4 * 3600 * SECOND, "UTC")
    return parse_message(text, ParserContext(now, "42", SQUADS, shift_words()))


def _weighed(likely: float, *requests: ShiftRequest, margin: float = 1.0) -> Classification:
    shares: Mapping[ShiftAction, float] = {ShiftAction.NO_CREW: likely, ShiftAction.ADD: 0.0, ShiftAction.REMOVE: 0.0}
    return Classification(shares, requests, margin)


@pytest.mark.parametrize(
    ("text", "second", "accord", "requests"),
    [
        ("no crew fri night", _weighed(0.99, NIGHT), ParserAgreement.SURE, {NIGHT}),
        ("no crew fri night", _weighed(0.6, NIGHT), ParserAgreement.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.99, NIGHT, margin=0.6), ParserAgreement.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.99, DAY), ParserAgreement.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.4), ParserAgreement.LOOSE, {NIGHT}),
        ("no crew fri night", _weighed(0.05), ParserAgreement.LOOSE, {NIGHT}),
        ("we have no crew fri", _weighed(0.05), ParserAgreement.LOOSE, {NIGHT._replace(start=None, end=None)}),
        ("no crew fri night beats karaoke", _weighed(0.05), ParserAgreement.NONE, set()),
        ("no crew fri", _weighed(0.4), ParserAgreement.NONE, set()),
        ("no crew fri day and fri night", _weighed(0.99, NIGHT), ParserAgreement.LOOSE, {NIGHT}),
        ("fri night went poof", _weighed(0.8, NIGHT), ParserAgreement.LOOSE, {NIGHT}),
        ("fri night went poof", _weighed(0.6, NIGHT), ParserAgreement.SURE, set()),
        ("maybe no crew fri night", _weighed(0.8, NIGHT), ParserAgreement.SURE, set()),
        ("who likes cake", _weighed(0.01), ParserAgreement.SURE, set()),
    ],
)
def test_how_two_readings_agree(
    text: str, second: Classification, accord: ParserAgreement, requests: set[ShiftRequest]
) -> None:
    """Sure only if both find the same, clearly; what one denies is nothing, unless nothing else is said."""
    heard = agree(_heard(text), second)

    assert (heard.accord, set(heard.requests)) == (accord, requests)


def test_several_things_in_one_message_have_to_be_clearer() -> None:
    """They are easily mixed up."""
    a_list, both = _heard("no crew fri 0600-1800 and 1800-0600"), (DAY, NIGHT)
    a_tale = replace(a_list, noise=2)

    assert agree(a_list, _weighed(0.9, *both, margin=0.9)).accord is ParserAgreement.SURE
    assert agree(a_tale, _weighed(0.9, *both, margin=0.9)).accord is ParserAgreement.LOOSE
    assert agree(a_tale, _weighed(0.99, *both, margin=0.99)).accord is ParserAgreement.SURE


def test_the_same_messages_give_the_same_weights() -> None:
    """Fitting is deterministic, and the table keeps what was fitted."""
    lessons = study(load(CORPUS, "tuning-4")[:40])

    first, second = fit([lessons]), fit([lessons])

    assert first == second
    assert parse_weights(format_weights(first)) == first


def test_the_shipped_weights_know_their_words() -> None:
    """What they say can be read off the table: "nobody" speaks for no crew, "add us" for adding."""
    weights = load_weights().message

    assert weights["nobody"][0] > weights["nobody"][1]
    assert weights["add"][1] > weights["add"][0]
    assert weights["off"][2] > weights["off"][1]
