"""Time limits of tests follow the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import time_limits
from tests.time_limits import Limit, until, within

ROOT = Path(__file__).parents[2]


def test_a_limit_is_stretched_by_how_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is measured only when the limit is reached, and again when the stretched one is."""
    measured = iter([3.0, 2.0])
    asked: list[float] = []
    clock = [0.0]

    def slowness() -> float:
        asked.append(clock[0])
        return next(measured)

    monkeypatch.setattr(time_limits, "slowness", slowness)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    limit = Limit(10)

    def is_over_at(now: float) -> bool:
        clock[0] = now
        return limit.is_over()

    assert [is_over_at(now) for now in (9.9, 10.0, 29.9, 30.0)] == [False, False, False, True]
    assert asked == [10.0, 30.0]


async def test_a_wait_ends_only_when_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress restarts the clock; a standstill ends the wait."""
    monkeypatch.setattr(time_limits, "slowness", lambda: 1.0)
    looks = 0

    def count() -> int:
        nonlocal looks
        looks += 1
        return looks

    assert await until(lambda: looks > 20, 0.05, moved=count)
    assert not await until(lambda: False, 0.05)


async def test_a_body_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """`within` raises TimeoutError when its stretched limit is over."""
    monkeypatch.setattr(time_limits, "slowness", lambda: 2.0)
    began = time.monotonic()

    with pytest.raises(TimeoutError):
        async with within(0.1):
            await until(lambda: False, 60)

    assert time.monotonic() - began >= 0.2


SLEEPY = """
import time, pytest
from tests import time_limits

@pytest.mark.timeout(0.3)
def test_on_a_slow_machine(monkeypatch):
    time_limits.slowness = lambda: 10.0
    time.sleep(0.6)

@pytest.mark.timeout(0.3)
def test_on_a_quiet_machine(monkeypatch):
    time_limits.slowness = lambda: 1.0
    time.sleep(60)
"""


def test_the_time_limit_of_a_test_is_stretched_too(tmp_path: Path) -> None:
    """A slow machine gets more time, and a test that hangs on a quiet one is ended."""
    (tmp_path / "test_sleepy.py").write_text(SLEEPY)
    plugins = ["-p", "pytest_timeout", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    place = ["-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", *plugins, *place],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**clean, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip

    assert "PASSED test_sleepy.py::test_on_a_slow_machine" in ran.stdout, ran.stdout + ran.stderr
    assert "FAILED test_sleepy.py::test_on_a_quiet_machine - Failed: Timeout (>0.3s)" in ran.stdout
