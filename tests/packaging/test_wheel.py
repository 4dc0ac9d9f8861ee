"""The built distribution is complete: it holds every file of the package, and the wheel works alone."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from .wheel import ROOT, build, find_uv, install, send_first_message

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


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(distribution: Distribution) -> None:
    """SQL statements, migrations, pages, prompts and `py.typed` included; only metadata comes on top."""
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "tidings").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
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
    assert not {name for name in names if name.startswith((".github/", ".ci/", "docs/screenshots/"))}


def test_the_wheel_alone_sends_a_first_message(distribution: Distribution, tmp_path: Path) -> None:
    """In an empty environment, outside the source tree; the example kills the engine in between."""
    python = install(distribution.uv, distribution.wheel, tmp_path / "environment")

    said = send_first_message(python, tmp_path)

    assert "The phone got it 1 time." in said
