"""What the pages tell people to type is typed here, and the examples are run."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.testing import PostgresCluster

from ..launcher import fork_server
from ..servers import is_running
from ..time_limits import until
from .pages import DOCS, ROOT
from .shell import needs_postgres, run_page, runnable

pytestmark = [pytest.mark.crash, pytest.mark.timeout(400)]

PAGES = [
    path for path in [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
    if runnable(path.read_text(encoding="utf-8"))
]  # fmt: skip


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_does_what_it_says(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Its marked blocks run from top to bottom, in an empty folder, without an error."""
    text = path.read_text(encoding="utf-8")
    if "curl " in text and shutil.which("curl") is None:
        pytest.skip("the page uses curl, which is not installed")
    has_server = PostgresCluster.find() is not None or "TIDINGS_TEST_POSTGRES" in os.environ
    postgres = request.getfixturevalue("bare_postgres_url") if needs_postgres(text) and has_server else None

    done = run_page(text, tmp_path, postgres=postgres, programs=fork_server().folder)

    assert done.returncode == 0, f"{path.name}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*/*.py")), ids=lambda path: path.stem)
def test_an_example_works(script: Path, tmp_path: Path) -> None:
    """It ends by itself with exit code 0, which it gives only when what it shows was true."""
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


OWNER = """
import sys
from pathlib import Path
from tests.docs.shell import run_page

run_page(sys.argv[1], Path(sys.argv[2]), postgres=None, programs=Path(sys.argv[2]))
"""
ENDLESS = """```sh run
echo $$ > shell.pid
until [ -e never ]; do sleep 0.2; done
```
"""


async def test_the_shell_of_a_page_ends_with_a_killed_test_process(tmp_path: Path) -> None:
    """A killed run leaves no shell behind that polls forever and slows down the next runs."""
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, ENDLESS, str(tmp_path))
    written = tmp_path / "shell.pid"
    assert await until(lambda: written.exists() and written.read_text().strip() != "")
    shell = int(written.read_text())
    assert is_running(shell)

    owner.kill()
    await owner.wait()

    assert await until(lambda: not is_running(shell)), "the shell outlived the test process"
