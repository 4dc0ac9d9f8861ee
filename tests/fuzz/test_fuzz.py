"""Made-up calls of every route: no answer that the description does not name, and no failure inside."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .broker import broken_by_broker_messages
from .served import engine, fill, fuzz, troubles
from .unauthenticated import attack

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="no schemathesis: make fuzz")
def test_a_made_up_call_of_each_route_gets_an_answer_that_is_described(tmp_path: Path, sqlite_url: str) -> None:
    """S21: one of each; thousands of them, on both databases, are `make fuzz`."""
    with engine(tmp_path, sqlite_url) as (address, logged):
        known = fill(address)
        done = fuzz(address, tmp_path, known, "--phases", "fuzzing", "--max-examples", "1", "--seed", "1")

    assert done.returncode == 0, done.stdout
    assert troubles(logged) == []


async def test_unauthenticated_requests_cannot_crash_slow_down_or_fill_the_engine(
    tmp_path: Path, sqlite_url: str
) -> None:
    """S17: seconds of made-up bytes for headers, forms, call-backs and mails; minutes are `make fuzz`."""
    found, complaints = await attack(tmp_path, sqlite_url, seconds=5)

    assert found.problems == []
    assert complaints == []
    assert found.mails


@pytest.mark.parametrize("kind", ["batch", "report", "marker"])
def test_what_the_broker_delivers_is_read_or_refused_and_never_breaks_the_reader(kind: str) -> None:
    """S23: whatever is not the wire format is Unreadable, and nothing else."""
    assert broken_by_broker_messages(kind, cases=3000, seed=1) == []
