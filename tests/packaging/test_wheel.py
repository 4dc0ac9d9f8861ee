"""The built distribution is complete: it holds every file of the package, and the wheel works alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from .wheel import ROOT, build, find_uv, install, read_docs, send_first_message

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400), pytest.mark.xdist_group("packaging")]


class Distribution(NamedTuple):
    """The built files and the uv that built them."""

    uv: str
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """Build once for all tests of this module."""
    uv = find_uv()
    if uv is None:
        pytest.skip("no uv: run make sync, or put it on the PATH")
    return Distribution(uv, *build(uv, tmp_path_factory.mktemp("dist")))


def manual_files() -> set[str]:
    """What `tidings docs` can reach: all Markdown pages, and every file of deploy/ and examples/ in git."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "docs/**.md", "deploy", "examples"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return {name for name in listed if name.startswith(("docs/", "deploy/", "examples/")) or "/" not in name}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(distribution: Distribution) -> None:
    """SQL statements, migrations, pages, prompts and `py.typed`; the manual and metadata come on top."""
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "tidings").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {f"tidings/manual/{name}" for name in manual_files()}
    with zipfile.ZipFile(distribution.wheel) as wheel:
        names = set(wheel.namelist())
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}

    assert names - metadata == expected
    assert {"LICENSE", "NOTICE"} <= {name.rsplit("/", 1)[-1] for name in metadata}


def test_the_sdist_holds_what_is_needed_to_build_and_test(distribution: Distribution) -> None:
    """Sources, tests and texts, without files that only the repository's host reads."""
    with tarfile.open(distribution.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}

    wanted = {"pyproject.toml", "uv.lock", "Makefile", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}
    assert wanted | {"tests/conftest.py", "docs/README.md", "src/tidings/py.typed"} <= names
    assert manual_files() <= names
    assert not {name for name in names if name.startswith((".github/", ".ci/", "docs/screenshots/"))}


@pytest.fixture(scope="module")
def python(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has only the wheel and its dependencies."""
    return install(distribution.uv, distribution.wheel, tmp_path_factory.mktemp("installed") / "environment")


def test_the_files_that_the_image_copies_build_a_wheel_with_the_manual(
    distribution: Distribution, tmp_path: Path
) -> None:
    """The Dockerfile builds from its COPY lines alone, and .dockerignore keeps none of them out."""
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    image = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[0]
    for line in re.findall(r"^COPY ([^-].*) \S+$", image, re.MULTILINE):
        for path in (path for pattern in line.split() for path in ROOT.glob(pattern)):
            assert {f"!{path.name}", f"!*{path.suffix}"} & ignored, path
            if path.is_dir():
                shutil.copytree(path, tmp_path / "context" / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (tmp_path / "context").mkdir(exist_ok=True)
                shutil.copy(path, tmp_path / "context")
    _, wheel = build(distribution.uv, tmp_path / "dist", tmp_path / "context")

    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(distribution.wheel) as whole:
        assert set(built.namelist()) == set(whole.namelist())


def test_the_wheel_alone_shows_the_documentation(python: Path, tmp_path: Path) -> None:
    """The installed command, outside the source tree: the index, a page, a section, a search, a path, an error."""
    index = json.loads(read_docs(python, tmp_path, "--json").stdout)["items"]
    page = read_docs(python, tmp_path, "send")
    folder = Path(read_docs(python, tmp_path, "deploy", "--path").stdout.strip())
    wrong = read_docs(python, tmp_path, "snd")

    assert {row["topic"] for row in index} >= {"tutorial", "send", "runbooks/errors", "deploy", "relief", "changelog"}
    assert page.stdout == (ROOT / "docs/how-to/send.md").read_text()
    assert read_docs(python, tmp_path, "postgresql#failover").stdout.startswith("## Failover\n")
    assert "rate-limits\t" in read_docs(python, tmp_path, "--search", "rate", "limits").stdout
    assert folder.is_relative_to(python.parents[1]) and (folder / "systemd/tidings.service").is_file()
    assert (wrong.returncode, wrong.stdout) == (2, "") and "Did you mean send" in wrong.stderr


def test_the_wheel_alone_sends_a_first_message(python: Path, tmp_path: Path) -> None:
    """In an empty environment, outside the source tree; the example kills the engine in between."""
    said = send_first_message(python, tmp_path)

    assert "The phone got it 1 time." in said
