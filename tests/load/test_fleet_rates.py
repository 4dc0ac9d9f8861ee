"""Rate limits kept by several real processes, counted by the receiver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.postgres
def test_four_real_processes_keep_both_limits_of_telegram(postgres_url: str) -> None:
    """30 a second and 1 a second per chat, counted by the receiver.

    Never over, with room for what a busy machine delays on the way, and it flows. How much of the limit is
    used is a figure, and `bench.limits_fleet` has it.
    """
    command = [sys.executable, "-m", "bench.limits_fleet", "--seconds", "5", "--database", postgres_url]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.stdout, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert seen["account"]["most_in_a_second"] <= 36, seen
    assert seen["chat"]["least_gap_ms"] >= 800, seen
    assert seen["chat"]["share"] >= 0.4, seen
