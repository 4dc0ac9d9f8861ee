"""Planted bugs: every one must be caught by a world's judge, or the simulation proves nothing (L7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import elsewhere
from .loop import Deadlock
from .planted_bugs import PLANTS, planted, worlds


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_caught(name: str) -> None:
    """With the bug in the engine, some world breaks a rule, or cannot end."""
    with planted(name) as plant:
        try:
            violations = next((report.violations for report in worlds(plant) if report.violations), None)
        except Deadlock:
            return

    assert violations, f"{name} went unseen: {plant.what}"


def test_every_planted_bug_is_in_the_table() -> None:
    """docs/explanation/proof.md says of each what catches it."""
    page = (Path(__file__).parents[2] / "docs/explanation/proof.md").read_text()

    assert [name for name in (*PLANTS, *elsewhere.PLANTS) if f"| `{name}`: " not in page] == []


@pytest.mark.parametrize("name", ["no_lease", "no_doubt", "no_start_mark"])
def test_without_its_bug_the_same_world_is_clean(name: str) -> None:
    """What is caught is the bug, and not the faults in which it shows."""
    assert next(worlds(PLANTS[name])).violations == {}
