"""Made-up calls of every route: no answer that the description does not name, and no failure inside."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .served import engine, fill, fuzz, troubles

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="no schemathesis: make fuzz")
def test_a_made_up_call_of_each_route_gets_an_answer_that_is_described(
    tmp_path: Path, sqlite_url: str
) -> None:
    """S21: one of each; thousands of them, on both databases, are `make fuzz`."""
    with engine(tmp_path, sqlite_url) as (address, logged):
        known = fill(address)
        done = fuzz(address, tmp_path, known, "--phases", "fuzzing", "--max-examples", "1", "--seed", "1")

    assert done.returncode == 0, done.stdout
    assert troubles(logged) == []
