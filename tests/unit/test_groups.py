"""Tests that share a costly server are run by one worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import os, pathlib, pytest

def note(group):
    with (pathlib.Path(__file__).parent / "ran").open("a") as file:
        file.write(f"{group} {os.environ['PYTEST_XDIST_WORKER']}\\n")

@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("group", [
    pytest.param("broker", marks=pytest.mark.xdist_group("broker")),
    pytest.param("browser", marks=pytest.mark.xdist_group("browser")),
    pytest.param("none", marks=()),
])
def test_one(group, number):
    note(group)
"""


def test_the_tests_of_one_group_are_run_by_one_worker(tmp_path: Path) -> None:
    """Two workers share a file with two groups: each group has one worker, and both workers have work."""
    (tmp_path / "test_many.py").write_text(TESTS)
    plugins = ["-p", "xdist.plugin", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "-c", os.devnull, "--rootdir", str(tmp_path),
         "-n", "2", "--dist", "loadgroup", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**clean, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr
    workers: defaultdict[str, set[str]] = defaultdict(set)
    for line in (tmp_path / "ran").read_text().splitlines():
        group, worker = line.split()
        workers[group].add(worker)
    assert [len(workers["broker"]), len(workers["browser"])] == [1, 1], dict(workers)
    assert len(workers["broker"] | workers["browser"] | workers["none"]) == 2, "one worker had nothing to do"
