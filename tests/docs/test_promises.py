"""The list of promises is complete, each is proved by tests that exist, and tests quote no other ids."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .pages import ROOT, page, tables

SEQUENCES = {"A": 12, "B": 18, "C": 13, "D": 16, "E": 9}
IDS = [f"{letter}{number}" for letter, last in SEQUENCES.items() for number in range(1, last + 1)]
TEST = re.compile(r"`(tests/[\w/]+\.py)::((?:\w+::)?test_\w+)`")
ID = re.compile(r"(?<![\w/%])[A-E][0-9]{1,2}\b(?![/%])")
TAG = re.compile(rf"{ID.pattern}|\([FRS][0-9]{{1,2}}(?:, [FRS][0-9]{{1,2}})*\)")
COMMENT = re.compile(r"^(?: *|.*  )# (.*)$", re.MULTILINE)
APPLIED = ROOT / "src/tidings/store/migrations"
"""Migrations are compared with what a database has applied, so that not even a comment in them may change."""


@cache
def cases_of(path: str) -> set[str]:
    """Every test of a file, within a class as `Class::test`."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    members = [(f"{node.name}::", node.body) for node in body if isinstance(node, ast.ClassDef)]
    return {
        f"{prefix}{node.name}"
        for prefix, nodes in [("", body), *members]
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def explanations(path: Path) -> Iterator[str]:
    """The docstrings and comments of a Python file, the comments of an SQL file; none if no id is in it."""
    text = path.read_text(encoding="utf-8")
    if not TAG.search(text):
        return
    if path.suffix == ".sql":
        yield from (line for line in text.splitlines() if line.startswith("--"))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""
    yield from COMMENT.findall(text)


def test_every_promise_has_its_row() -> None:
    """In order, without a gap, and with nothing else."""
    assert [row["id"] for row in tables(page("explanation/promises.md"))] == IDS


@pytest.mark.parametrize("row", tables(page("explanation/promises.md")), ids=lambda row: str(row["id"]))
def test_every_promise_names_tests_that_exist(row: dict[str, str]) -> None:
    """At least one; a renamed test is noticed here."""
    named = TEST.findall(row["proved by"])

    assert named, f"{row['id']} names no test"
    assert len(named) == row["proved by"].count(".py::"), f"{row['id']}: a name is not a path and a test"
    for path, name in named:
        assert (ROOT / path).is_file(), f"{row['id']}: {path} does not exist"
        assert name in cases_of(path), f"{row['id']}: {path} has no {name}"


def test_every_id_that_a_test_quotes_is_on_the_page() -> None:
    """In docstrings and comments; data in strings is not an id."""
    listed = {row["id"] for row in tables(page("explanation/promises.md"))}
    quoted = {
        (path.relative_to(ROOT).as_posix(), found)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for text in explanations(path)
        for found in ID.findall(text)
    }

    assert len(quoted) > 100, "the ids were not found"
    assert {(path, id_) for path, id_ in quoted if id_ not in listed} == set()


def test_the_source_explains_itself_without_ids() -> None:
    """No id of a promise, a fault, a security rule or a test rule in docstrings and comments of src/."""
    files = [path for end in ("py", "sql") for path in sorted((ROOT / "src").rglob(f"*.{end}"))]
    tagged = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in files
        if APPLIED not in path.parents or path.suffix == ".py"
        for text in explanations(path)
        for found in TAG.findall(text)
    ]

    assert len(files) > 500 and tagged == []


def test_a_promise_id_is_distinguished_from_other_words() -> None:
    """Codes that only look alike are left alone."""
    assert ID.findall("A1, (B12) and C3-C6: D16.") == ["A1", "B12", "C3", "C6", "D16"]
    assert TAG.findall("its deadline (F24, S7), (R1)") == ["(F24, S7)", "(R1)"]
    assert TAG.findall("T1/B1/token, %C3%9F, UTF-8, E164, files in S3") == []
