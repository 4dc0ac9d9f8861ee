"""Retry-After: both forms, within bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.time import instant
from tidings.wire.retry_after import MAX_RETRY_AFTER, retry_after

NOW = instant(datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("30", 30),
        (" 30 ", 30),
        ("64.57", 64.57),
        ("86400", 86_400),
        ("86401", 86_400),
        ("9" * 30, 86_400),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30),
        ("Sunday, 15-Nov-26 12:00:30 GMT", 30),
        ("Sun, 15 Nov 2026 12:00:30 -0000", 30),
        ("Sun, 15 Nov 2026 13:00:30 +0100", 30),
        ("Sun, 15 Nov 2026 11:59:00 GMT", 0),
        ("Sun, 15 Nov 2099 12:00:00 GMT", 86_400),
    ],
)
def test_seconds_and_dates_are_honoured_within_bounds(value: str, seconds: float) -> None:
    """F27: whole and broken seconds and HTTP dates, never negative, never over a day."""
    assert retry_after(value, now=NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "-1",
        "+5",
        "soon",
        "nan",
        "inf",
        "1e3",
        "0x10",
        "1 2",
        "٣",
        "9" * 400,
        "Sun, 99 Nov 2026",
        "Sun, 15 Nov 2026 12:00:30 GMT" + "x" * 100,
        "\x00",
        "5\r\n5",
    ],
)
def test_an_invalid_retry_after_is_ignored(value: str | None) -> None:
    """F27: the policy's own delay applies when the header says nothing that makes sense."""
    assert retry_after(value, now=NOW) is None


@given(st.text(max_size=80))
def test_no_header_breaks_the_parser(value: str) -> None:
    """Whatever a hostile receiver writes (S18), the wait is absent or within bounds."""
    wait = retry_after(value, now=NOW)

    assert wait is None or timedelta() <= wait <= MAX_RETRY_AFTER
