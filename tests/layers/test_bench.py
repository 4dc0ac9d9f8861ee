"""What only `make bench` runs is found by a test, too, when the engine moves on."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "bench").glob("*.py")))
def test_a_measurement_finds_what_it_measures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each can be imported: what it takes from the engine is there. Peers bring packages of their own."""
    monkeypatch.syspath_prepend(ROOT)
    importlib.import_module(f"bench.{name}")
