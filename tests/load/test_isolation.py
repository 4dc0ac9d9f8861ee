"""Channels do not hold each other up: four of them in two real processes, three of them in trouble (A5)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.postgres
def test_trouble_on_three_channels_leaves_the_fourth_alone(postgres_url: str) -> None:
    """Nothing lost, every duplicate witnessed and flagged, and the healthy one keeps its pace.

    The pace is judged for a machine on which other tests run; `python -m bench.isolation` has the strict bar.
    """
    command = [sys.executable, "-m", "bench.isolation", "--messages", "400", "--rate", "60", "--broken",
               "--database", postgres_url]  # fmt: skip
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert (seen["lost"], seen["unflagged"]) == (0, 0), seen
    assert seen["waiting"] == 40, "what is down waits, and is not lost"
    assert seen["duplicates"] > 0, "answers were lost, and each cost a copy"
    assert seen["ratio"] >= 0.4, seen
