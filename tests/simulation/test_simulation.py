"""Worlds in virtual time: the same kernel, many nodes, seeded faults, a judge (A12, B5, B13, B16, B17)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from .many import Sum, verdict
from .world import simulate

SEEDS = 200
MORE = 200  # where a rare thing has not happened yet


@pytest.mark.timeout(600)
def test_many_simulations_lose_nothing_and_have_no_silent_duplicates() -> None:
    """Every rule holds after every write and at the end; and every fault and every rare path was met (R7)."""
    total = Sum()
    for seed in chain(range(SEEDS), range(SEEDS, SEEDS + MORE)):
        if seed >= SEEDS and not total.missing:
            break
        total.add(simulate(seed))

    assert not total.guilty, "\n".join(verdict(report) for report in total.guilty)
    assert not total.missing, f"never happened, so this run proves nothing: {', '.join(total.missing)}"


def test_a_seed_is_a_replay() -> None:
    """The same seed gives the same trace, to the last line."""
    first, second = simulate(13), simulate(13)

    assert (first.trace, first.met) == (second.trace, second.met)
    assert len(first.trace) > 100


def test_a_seed_is_a_replay_in_another_process() -> None:
    """Whatever order its sets have there; and the last line of the command is one JSON object."""
    there = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", "13"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(there.stdout.splitlines()[-1])

    assert (told["ok"], told["trace"]) == (True, simulate(13).digest)
