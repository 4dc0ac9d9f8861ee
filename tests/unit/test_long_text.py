"""Long texts: refused or split, and what it means when only a part has been sent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import Invalid
from tidings.model.outcome import Defer, Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category
from tidings.outbound.channels.long_text import MAX_PARTS, LongText, parts_of, send_parts

MOST = 20
TEXTS = st.text(st.sampled_from("ab \n\u0301👍\u200d"), max_size=MOST * (MAX_PARTS // 2 - 1))


@given(TEXTS)
def test_the_parts_are_the_text_but_for_white_space(text: str) -> None:
    """Nothing is lost, nothing is doubled, no part is too long or empty."""
    parts = parts_of(text, MOST, LongText.SPLIT)

    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", text)
    assert all(len(part) <= MOST for part in parts)
    assert len(parts) == 1 or all(part.strip() for part in parts)


def test_a_text_is_cut_at_a_paragraph_before_a_line_before_a_word() -> None:
    """As long as the part is at least half full."""
    assert parts_of("one two three\n\nfour five six", MOST, LongText.SPLIT) == ["one two three", "four five six"]
    assert parts_of("one two three\nfour five six", MOST, LongText.SPLIT) == ["one two three", "four five six"]
    assert parts_of("one two three four five", MOST, LongText.SPLIT) == ["one two three four", "five"]
    assert parts_of("a\n\n" + "b" * 25, MOST, LongText.SPLIT) == ["a\n\n" + "b" * 17, "b" * 8]


def test_a_sign_is_not_torn_from_its_accent() -> None:
    """A letter and the mark over it stay together."""
    assert parts_of("x" * 19 + "e\u0301" + "y" * 5, MOST, LongText.SPLIT)[0] == "x" * 19


@pytest.mark.parametrize(
    ("length", "rule", "words"),
    [
        (MOST + 1, LongText.REFUSE, "long_text = 'split'"),
        (MOST * MAX_PARTS + 1, LongText.SPLIT, "10 messages"),
        (MOST * 100, LongText.SPLIT, "10 messages"),
    ],
)
def test_what_is_too_long_is_refused_with_a_remedy(length: int, rule: LongText, words: str) -> None:
    """Also when splitting it would be a flood."""
    with pytest.raises(Invalid, match=words) as caught:
        parts_of("x" * length, MOST, rule)
    assert caught.value.field == "text"


@pytest.mark.parametrize(
    "failure",
    [
        Retry(Category.THROTTLING, "slow down"),
        Reject(Category.PERMANENT, "slow down"),
        Unknown("slow down"),
        Defer(5, "slow down"),
        Skip("slow down"),
    ],
)
async def test_a_failure_after_the_first_part_is_unknown(failure: Outcome) -> None:
    """R1: the recipient has a part of it; the first part's own failure is what it is."""

    async def second_fails(number: int, _id: str) -> Outcome:
        return Done(f"r-{number}") if number == 0 else failure

    async def fails(_: int, _id: str) -> Outcome:
        return failure

    assert await send_parts("7", [0, 1, 2], fails) == failure
    assert await send_parts("7", [0, 1, 2], second_fails) == Unknown(
        "1 of 3 parts were sent (r-0), the next was not: slow down"
    )


async def test_the_receipt_names_all_parts() -> None:
    """In order; without names there is none."""

    async def done(receipt: str | None, _id: str) -> Outcome:
        return Done(receipt)

    assert await send_parts("7", ["a", None, "b"], done) == Done("a b")
    assert await send_parts("7", [None], done) == Done(None)
