"""Planted bugs that only other layers can see: the test named for each fails with it (L7)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.testing import RabbitBroker

from .elsewhere import PLANTS

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


@pytest.mark.skipif("TIDINGS_CRASH_SCALE" not in os.environ, reason="runs in make crash and make soak")
@pytest.mark.parametrize("name", PLANTS)
def test_its_named_test_fails_with_a_planted_bug(name: str) -> None:
    """And passes without."""
    if name == "no_confirm" and RabbitBroker.find() is None:
        pytest.skip("no RabbitMQ: install rabbitmq-server")
    assert [_runs(name, plant) for plant in ("", name)] == [0, 1]


def _runs(name: str, plant: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "tests.simulation.elsewhere"]
    return subprocess.run(
        [*command, PLANTS[name].test, "-k", "not postgres"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TIDINGS_PLANT": plant},
        capture_output=True,
        check=False,
    ).returncode
