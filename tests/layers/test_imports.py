"""The architecture, as far as a machine can hold it: who imports whom, and what may stand where."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("layers")  # so that every file is parsed once

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidings"
TESTS = ROOT / "tests"
SQL = SOURCE / "store" / "sql"

LAYERS = (
    ("cli", "api", "dashboard", "engine", "testing", "client", "drill"),
    ("app", "config", "doctor"),
    ("outbound", "inbound", "migration", "access"),
    ("dispatch",),
    ("kernel",),
    ("store",),
    ("observability", "wire", "inputs"),
    ("model",),
)
"""From top to bottom: a line imports only lines below it, and names on one line do not import each other."""

BESIDE = {"sandbox": {"model", "wire"}}
"""Packages outside the column: what each may import. Only the two top lines may import them."""

ALLOWED_SIBLINGS = {
    ("app", "config"): "the composition root reads the settings",
    ("doctor", "app"): "the doctor looks at a whole engine",
    ("doctor", "config"): "and at its settings",
    ("cli", "api"): "serve starts the HTTP face",
    ("cli", "dashboard"): "serve mounts the pages",
    ("cli", "drill"): "the drill is a command",
}

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

PURE = ("kernel/decisions.py", "kernel/quarantine.py", "kernel/retry.py", "kernel/breaker.py")
INPUT_OUTPUT = {"apsw", "asyncio", "asyncpg", "os", "pyreqwest", "socket", "sqlite3", "subprocess", "threading"}

CLOCK_AND_CHANCE = re.compile(
    r"datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today|time\.time(_ns)?"
    r"|random\.(?!Random\b)\w+|(uuid|uuid_utils)\.uuid4"
)
MAY_ASK_THE_CLOCK = ("kernel/clock.py", "testing/", "sandbox/", "drill/")

SLEEP = re.compile(r"(time|asyncio|anyio|trio)\.sleep")

STATEMENT = re.compile(
    r"\s*(select\b.+\bfrom\b|insert\s+(or\s+\w+\s+)?into\b|update\s+\S+\s+set\b|delete\s+from\b|truncate\s+table\b"
    r"|(create|drop|alter)\s+(temp\w*\s+|unique\s+)?(table|index|view|trigger|schema|database|type)\b"
    r"|with\s+(recursive\s+)?\w+(\s*\([\w\s,]+\))?\s+as\s+(not\s+|materialized\s+)*\(|pragma\s+\w+\s*[=(;]"
    r"|begin\s+(immediate|exclusive|isolation)\b)",
    re.IGNORECASE | re.DOTALL,
)

BANNED_NAMES = re.compile(r"_?(utils?|helpers?|common|managers?|misc)")


def modules(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@functools.cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """The package in which a file's relative imports start: 'tidings.kernel' for kernel/task_actions.py."""
    return ".".join(("tidings", *path.relative_to(SOURCE).parts[:-1]))


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Absolute names of everything imported, at any depth, with the names taken from modules."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def part(name: str) -> str | None:
    """The layer's name that a dotted name belongs to: 'kernel' for tidings.kernel.task_actions.claim."""
    own, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    return first if own == "tidings" and (first in LEVEL or first in BESIDE) else None


def objection(importer: str, target: str) -> str | None:
    """Why one part may not import another, or None if it may."""
    if importer == target or (importer, target) in ALLOWED_SIBLINGS:
        return None
    if importer in BESIDE:
        return None if target in BESIDE[importer] else f"{importer} stands beside the layers"
    if target in BESIDE:
        return None if LEVEL[importer] <= LEVEL["app"] else f"only faces and app know {target}"
    if LEVEL[importer] == LEVEL[target]:
        return f"{importer} and {target} are siblings"
    return f"{target} lies above {importer}" if LEVEL[importer] > LEVEL[target] else None


def forbidden_imports(tree: ast.AST, package: str, importer: str) -> Iterator[str]:
    for name in imported(tree, package):
        target = part(name)
        reason = objection(importer, target) if target else None
        if reason:
            yield f"imports {name}: {reason}"


def chain(node: ast.expr) -> str:
    """A name with its attributes, 'a.b.c'; empty for an attribute of anything else."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return node.id + rest if isinstance(node, ast.Name) else ""


@functools.cache
def full_names(tree: ast.AST) -> tuple[tuple[ast.expr, str], ...]:
    """Each name used in an expression, spelt out by the imports: 'datetime.datetime.now' for `d.now`."""
    known: dict[str, str] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    used: list[tuple[ast.expr, str]] = []
    for node in walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = chain(node).partition(".")
            if first in known:
                used.append((node, f"{known[first]}.{rest}" if rest else known[first]))
    return tuple(used)


def used_clocks(tree: ast.AST) -> Iterator[str]:
    return (f"line {node.lineno}: {name}" for node, name in full_names(tree) if CLOCK_AND_CHANCE.fullmatch(name))


def sleeps(tree: ast.AST) -> Iterator[str]:
    """Calls that wait on the real clock; `sleep(0)` waits for nothing and only lets others run."""
    names = {node for node, name in full_names(tree) if SLEEP.fullmatch(name)}
    for node in walk(tree) if names else ():
        if isinstance(node, ast.Call) and node.func in names:
            written = ast.unparse(node)
            if not written.endswith("(0)"):
                yield f"line {node.lineno}: {written}"


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String literals that are data: no docstrings; the gaps of an f-string are written as '?'."""
    loose = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    for node in walk(tree):
        if isinstance(node, ast.JoinedStr):
            loose |= {id(piece) for piece in node.values}
            pieces = (str(p.value) if isinstance(p, ast.Constant) else "?" for p in node.values)
            yield node.lineno, "".join(pieces)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in loose:
            yield node.lineno, node.value


def statements(tree: ast.AST) -> Iterator[str]:
    """Literals that read like SQL. A sentence ('Select a channel from ...') begins with one capital."""
    for line, text in texts(tree):
        verb = text.split(maxsplit=1)[0] if text.strip() else ""
        if STATEMENT.match(text) and (verb.isupper() or verb.islower()):
            yield f"line {line}: {text.strip()[:60]}"


def inspect(paths: Iterator[Path], look: Callable[[ast.AST], Iterator[str]]) -> list[str]:
    return [f"{place(path)}: {finding}" for path in paths for finding in look(parse(path))]


def test_every_part_has_a_place_in_the_layers() -> None:
    """A new top-level package or module is put into the list before it is used."""
    found = {path.stem for path in SOURCE.iterdir() if (path.is_dir() and any(modules(path))) or path.suffix == ".py"}

    assert found - set(LEVEL) - set(BESIDE) - {"__init__", "__main__"} == set()


def test_imports_point_down_only() -> None:
    """No layer knows those above it or beside it."""
    wrong = [
        f"{place(path)} {problem}"
        for path in modules(SOURCE)
        if (own := part(f"{dotted(path)}.{path.stem}"))
        for problem in forbidden_imports(parse(path), dotted(path), own)
    ]

    assert wrong == []


def test_the_words_need_nothing_but_the_standard_library() -> None:
    """`model` can be imported anywhere, at no cost."""
    wrong = [
        f"{place(path)}: {name}"
        for path in modules(SOURCE / "model")
        for name in imported(parse(path), dotted(path))
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "tidings"}
    ]

    assert wrong == []


def test_decisions_are_made_without_input_or_output() -> None:
    """Deciding, retry delays and breakers are functions of values."""
    wrong = [
        f"{path}: {name}"
        for path in PURE
        if (SOURCE / path).exists()
        for name in imported(parse(SOURCE / path), "tidings.kernel")
        if name.partition(".")[0] in INPUT_OUTPUT
    ]

    assert wrong == []


def test_only_the_clock_module_asks_for_time_chance_and_identity() -> None:
    """Everybody else is handed a clock, a random generator and new ids, so that tests can decide them."""
    bound = (path for path in modules(SOURCE) if not path.relative_to(SOURCE).as_posix().startswith(MAY_ASK_THE_CLOCK))

    assert inspect(bound, used_clocks) == []


def test_no_test_sleeps() -> None:
    """Tests move time by hand; only crash drills, with real processes, wait for real.

    In the simulation a sleep is virtual: its loop jumps to the next timer. `time_limits.py` sleeps between
    two looks at what another process does, for all tests that start one.
    """
    apart = {TESTS / "crash", TESTS / "simulation", TESTS / "time_limits.py"}
    quiet = (path for path in modules(TESTS) if not apart & {path, *path.parents})

    assert inspect(quiet, sleeps) == []


def test_sql_stands_in_the_store_only() -> None:
    """No statement is written in Python outside the store."""
    outside = (path for path in modules(SOURCE) if SOURCE / "store" not in path.parents)

    assert inspect(outside, statements) == []


def test_every_statement_file_is_used() -> None:
    """Each file of SQL is asked for by its name somewhere; what is not used is deleted."""
    asked = {text for path in modules(SOURCE) for _, text in texts(parse(path))}
    names = {path: path.relative_to(SQL).with_suffix("").as_posix() for path in SQL.rglob("*.sql")}

    unused = [
        place(path) for path, name in names.items() if not asked & {path.stem, name, name.partition("/")[2], path.name}
    ]

    assert sorted(unused) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    """A function lives beside its user or in a module with a proper noun."""
    everything = [*SOURCE.rglob("*"), *TESTS.rglob("*"), *(ROOT / "bench").rglob("*")]

    assert [place(path) for path in everything if BANNED_NAMES.fullmatch(path.stem)] == []


@pytest.mark.parametrize(
    ("importer", "package", "source", "expected"),
    [
        ("store", "tidings.store", "from ..kernel import queue", 1),
        ("store", "tidings.store.sqlite", "from ...kernel.queue import Queue", 1),
        ("store", "tidings.store", "from .. import kernel", 1),
        ("store", "tidings.store", "def late():\n    import tidings.kernel.task_actions", 1),
        ("outbound", "tidings.outbound", "from tidings.inbound import pipeline", 1),
        ("kernel", "tidings.kernel", "from tidings import sandbox", 1),
        ("sandbox", "tidings.sandbox", "from tidings.store import rows", 1),
        ("testing", "tidings.testing", "from tidings import cli", 1),
        ("testing", "tidings.testing", "from tidings import app, kernel, sandbox", 0),
        ("kernel", "tidings.kernel", "from . import clock\nfrom ..store import rows\nimport json", 0),
        ("kernel", "tidings.kernel", "from tidings import __version__", 0),
    ],
)
def test_a_wrong_import_is_seen(importer: str, package: str, source: str, expected: int) -> None:
    """The check itself works, however the import is written."""
    assert len(list(forbidden_imports(ast.parse(source), package, importer))) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from datetime import datetime\ndatetime.now()", 1),
        ("import datetime as d\nfield(default_factory=d.datetime.utcnow)", 1),
        ("import time\ntime.time()", 1),
        ("from time import time\ntime()", 1),
        ("import random\nrandom.choice([1])", 1),
        ("from uuid import uuid4\nuuid4()", 1),
        ("import random, time\nrandom.Random(1).choice([1])\ntime.monotonic()\nclock.now()", 0),
    ],
)
def test_a_hidden_clock_is_seen(source: str, expected: int) -> None:
    """Aliases do not hide a clock, and a generator or clock that was handed in is fine."""
    assert len(list(used_clocks(ast.parse(source)))) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("run('SELECT id FROM tasks')", 1),
        ("run(f'delete from {table} where id = 1')", 1),
        ("run('''\n  WITH due AS (\n SELECT 1)''')", 1),
        ("run('update tasks set state = 1')", 1),
        ("'''SELECT id FROM tasks is a docstring.'''", 0),
        ("help('Select a channel from the list')", 0),
        ("help('update the settings', 'delete', 'with one as the other', 'create a table')", 0),
    ],
)
def test_a_statement_in_python_is_seen(source: str, expected: int) -> None:
    """SQL is told from prose."""
    assert len(list(statements(ast.parse(source)))) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import asyncio\nasyncio.sleep(1)", 1),
        ("from time import sleep as rest\nrest(0.1)", 1),
        ("import asyncio\nasyncio.sleep(0)\nclock.sleep(5)", 0),
    ],
)
def test_a_sleep_is_seen(source: str, expected: int) -> None:
    """Waiting is found under any name; yielding and a hand-driven clock are not waiting."""
    assert len(list(sleeps(ast.parse(source)))) == expected
