"""The security matrix: each of its rows names a test that is there; and the rows that no other test holds."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib

from ..acceptance.harness import house
from ..docs.pages import ROOT, page

ROW = re.compile(r"^\| (S\d+) \|.*\| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HOSTILE = ("'; drop table tasks; --", '" or 1=1 --', "%", "_", "\\", "a'b", "🙂", "x" * 300, "-1", "null")


def test_every_row_of_the_matrix_names_a_test_that_is_there() -> None:
    """S1 to S24, in order, without a hole; a test that was renamed is missed here."""
    rows = dict(ROW.findall(page("explanation/security.md")))
    assert list(rows) == [f"S{number}" for number in range(1, 25)]

    for id_, held_by in rows.items():
        named = TEST.findall(held_by)
        assert named, id_
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            known = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
            assert name in known, f"{id_}: {path} has no {name}"


def test_nothing_is_unpickled_or_evaluated() -> None:
    """S23: no module that makes objects or code out of bytes is used."""
    banned = re.compile(r"^\s*(import|from) (pickle|marshal|shelve|dill)\b|(?<![\w.])(eval|exec)\(", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {used[0]}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if (used := banned.search(path.read_text(encoding="utf-8")))
    ]

    assert found == []


def test_every_dependency_is_locked_with_its_hash() -> None:
    """S24: whatever is downloaded is known by its SHA-256."""
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    foreign = [one for one in locked if "registry" in one["source"]]
    files = [file for one in foreign for file in [*one.get("wheels", []), *filter(None, [one.get("sdist")])]]

    assert len(foreign) > 20 and all(file["hash"].startswith("sha256:") for file in files)


def test_the_locked_dependencies_are_audited_and_a_release_lists_them() -> None:
    """S24: CI asks about every locked version by its hash; it fails where nobody answers."""
    steps = subprocess.run(["make", "-n", "audit", "dist"], cwd=ROOT, capture_output=True, text=True, check=True)
    export, audit = (next(line for line in steps.stdout.splitlines() if word in line)
                     for word in ("locked.txt >", "pip-audit=="))  # fmt: skip
    assert "--frozen" in export and "--all-extras" in export and "--no-hashes" not in export
    assert "--require-hashes" in audit and "--strict" in steps.stdout and "cyclonedx" in steps.stdout
    workflows = ROOT / ".github" / "workflows"
    ci = (workflows / "ci.yml").read_text(encoding="utf-8")
    assert "run: make audit" in ci and re.search(r"needs: \[.*\baudit\b.*\]", ci)
    assert "run: make dist" in (workflows / "release.yml").read_text(encoding="utf-8")


async def test_hostile_words_in_every_filter_are_only_words(sqlite_url: str) -> None:
    """S13: through every parameter of every list, generated from the description; nothing fails inside."""
    async with house(sqlite_url) as home:
        document = (await home.http.get("/openapi.json")).json()
        asked = [
            (path, parameter["name"])
            for path, operations in document["paths"].items()
            for parameter in operations.get("get", {}).get("parameters", [])
            if parameter["in"] == "query" and "{" not in path
        ]
        assert len(asked) > 50
        for number, (path, name) in enumerate(asked):
            for words in (HOSTILE[number % len(HOSTILE)], HOSTILE[0]):
                answer = await home.http.get(path, params={name: words})
                assert answer.status_code in (200, 400, 401, 404, 413, 422), f"{path} {name} {words!r}: {answer.text}"
        assert (await home.http.get("/health")).status_code == 200
