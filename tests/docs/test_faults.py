"""The matrix of faults: complete, in order, and every test that it names is there (F1 to F66)."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from .pages import ROOT, page, tables

TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FAULTS = [f"F{number}" for first, last in ((1, 55), (60, 66)) for number in range(first, last + 1)]


@cache
def found_in(path: str) -> set[str]:
    """The names of the tests in a file, within classes, too."""
    tree = ast.parse(Path(ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_fault_has_its_row() -> None:
    """In order, without a hole."""
    assert [row["#"] for row in tables(page("explanation/faults.md"))] == FAULTS


def test_every_fault_is_shown_by_a_test_that_is_there_or_says_that_it_is_not() -> None:
    """A test that was renamed is missed here; so is a row that claims without showing."""
    for row in tables(page("explanation/faults.md")):
        shown = row["shown by"]
        named = TEST.findall(shown)
        assert named or "*not shown*" in shown or "does not apply" in shown, row["#"]
        for path, name in named:
            assert (ROOT / path).is_file(), f"{row['#']}: there is no {path}"
            assert name in found_in(path), f"{row['#']}: {path} has no {name}"
