"""Durations as people write and read them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model import durations

WRITTEN = {
    "250ms": timedelta(milliseconds=250),
    "30s": timedelta(seconds=30),
    "5m": timedelta(minutes=5),
    "10 min": timedelta(minutes=10),
    "12h": timedelta(hours=12),
    "7d": timedelta(days=7),
    "2 weeks": timedelta(days=14),
    "1h30m": timedelta(minutes=90),
    "1 hour and 30 minutes": timedelta(minutes=90),
    "1.5h": timedelta(minutes=90),
    " 5 M ": timedelta(minutes=5),
    "PT10M": timedelta(minutes=10),
    "P1DT2H": timedelta(hours=26),
    "PT0.5S": timedelta(milliseconds=500),
    "90": timedelta(seconds=90),
    "0.5": timedelta(milliseconds=500),
}


@pytest.mark.parametrize(("text", "length"), WRITTEN.items())
def test_a_duration_is_read_with_its_unit(text: str, length: timedelta) -> None:
    """The forms that settings and flags accept; a number alone is seconds."""
    assert durations.parse(text) == length


def test_a_plain_number_is_seconds() -> None:
    """As TOML gives it: whole or with a fraction."""
    assert durations.parse(30) == timedelta(seconds=30)
    assert durations.parse(0.25) == timedelta(milliseconds=250)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "m", "5x", "5 parsecs", "five minutes", "1 month", "1y", "5m 5m", "30m1h", "1h,", "1h and", "P"),
        *("PT", "P1M", "P1Y", "-5m", "-1", "nan", "inf", "1e400", "1_000", "5 m x", "99999999999999d", "0x10"),
    ],
)
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    """A month has no length, a negative wait no meaning, and a repeated unit is a slip."""
    with pytest.raises(ValueError, match=r"is not a duration|is negative|is too long"):
        durations.parse(text)


@pytest.mark.parametrize("raw", [True, None, [], {}])
def test_what_is_not_even_text_is_refused(raw: object) -> None:
    """TOML can hold anything; true is not one second."""
    with pytest.raises(ValueError, match="is not a duration"):
        durations.parse(raw)  # type: ignore[arg-type]


SPELLED = {
    timedelta(0): "0 s",
    timedelta(microseconds=400): "0 s",
    timedelta(milliseconds=250): "250 ms",
    timedelta(microseconds=999_900): "1 s",
    timedelta(seconds=1.5): "1.5 s",
    timedelta(seconds=9.96): "10 s",
    timedelta(seconds=30): "30 s",
    timedelta(seconds=59.7): "1 min",
    timedelta(minutes=5): "5 min",
    timedelta(seconds=599.8): "10 min",
    timedelta(seconds=90): "1 min 30 s",
    timedelta(minutes=90): "1 h 30 min",
    timedelta(hours=1, seconds=5): "1 h",
    timedelta(hours=36): "1 d 12 h",
    timedelta(days=7): "7 d",
    -timedelta(minutes=5): "-5 min",
}


@pytest.mark.parametrize(("length", "text"), SPELLED.items())
def test_a_duration_is_spelled_in_its_two_largest_units(length: timedelta, text: str) -> None:
    """Short enough for a line, exact enough to plan by."""
    assert durations.humanize(length) == text


@given(st.integers(min_value=0, max_value=10**9))
def test_a_spelled_duration_reads_back_within_its_smallest_unit(seconds: int) -> None:
    """What is shown can be typed in again, and means nearly the same."""
    length = timedelta(seconds=seconds)

    again = durations.parse(durations.humanize(length))

    assert abs(again - length) < max(timedelta(seconds=1), length / 20)
