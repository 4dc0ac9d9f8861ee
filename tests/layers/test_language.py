"""The project speaks the language of the field: a few rules over names and texts that a machine can check."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from .test_imports import ROOT, SOURCE, modules, parse, place

pytestmark = pytest.mark.xdist_group("layers")

NOUNS = {"mapping", "testing", "tuning", "upcoming", "wiring"}
"""Words that end in -ing and are no gerunds: what a module may be called."""

BANNED = re.compile(
    r"\b(whoever|pretend(s|ed|ing)?|in doubt|mend(s|ed|ing)?|let(s|ting)? go of|ways? out"
    r"|longer than nothing|(ends?|ended|stops?|stopped) in order|tabulator|nobody can be sure"
    r"|(?<!there )is no (kind|channel|number|field|name|list|text|date|time|key)|so many, then it ends)\b",
    re.IGNORECASE,
)
"""Phrases of a private language, and riddles; docs/explanation/glossary.md has the words to use instead."""

TEXTS = ("*.py", "*.html", "*.js", "*.sql", "*.md")


def texts() -> Iterator[tuple[str, int, str]]:
    """Every line of the package and of what people read, with its place."""
    folders = [SOURCE, *(ROOT / name for name in ("bench", "deploy", "docs", "examples", "tools"))]
    files = [path for folder in folders for kind in TEXTS for path in folder.rglob(kind)]
    for path in [*sorted(files), *sorted(ROOT.glob("*.md"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield place(path), number, line


def test_no_text_uses_a_banned_phrase() -> None:
    """Help, errors, pages, docs, comments and docstrings use plain English and the terms of the field."""
    found = [f"{name}:{number}: {hit[0]}" for name, number, line in texts() if (hit := BANNED.search(line))]
    assert not found, "\n".join(found)


def test_class_names_are_unique_in_the_package() -> None:
    """One name, one thing: a class can be found by its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules(SOURCE):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place(path))
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_modules_are_named_by_nouns() -> None:
    """A module is called after what it holds (retry, rate_limits), not after an activity (judging)."""
    names = {part for path in modules(SOURCE) for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert not {name for name in names if name.endswith("ing") and name.rpartition("_")[2] not in NOUNS}


def test_each_package_lists_its_modules() -> None:
    """The docstring of a package is the map of its modules, one line each."""
    missing = []
    for path in modules(SOURCE):
        if path.name != "__init__.py" or path.parent in (SOURCE, SOURCE / "cli", SOURCE / "store" / "migrations"):
            continue
        listed = re.findall(r"^(\w+):", ast.get_docstring(parse(path)) or "", re.MULTILINE)
        there = {part.stem for part in path.parent.glob("*.py")} - {"__init__", "__main__"}
        missing += [f"{place(path)}: {name}" for name in sorted(there - set(listed))]
    assert not missing, "\n".join(missing)
