"""`tidings top` and shell completion: the terminal's own comforts."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import shlex
import shutil
import subprocess
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tidings.cli.program import program
from tidings.cli.top import drawn, watch
from tidings.model.outcome import Done, Reject
from tidings.model.task import Category
from tidings.outbound.glance import glance

from .house import House, house
from .program import COMMAND


@pytest.fixture
async def home(sqlite_url: str) -> AsyncIterator[House]:
    """An engine that has sent one, failed one, and has one due."""
    async with house(sqlite_url) as built:
        built.script(
            "out", lambda m: Done() if m.recipient == "ada" else Reject(Category.PERMANENT, "no [b]")
        )
        await built.accept(to="ada")
        await built.accept(to="bob")
        await built.work()
        await built.app.desk.channels.pause("careful", reason="for a while")
        await built.accept(to="cyd")
        built.clock.advance(20)
        await built.app.worker.node.beat('{"slots": 10, "in_flight": 0, "memory": 0.25}')
        yield built


def seen(text: str) -> bool:
    """Whether it shows what is going on."""
    words = ("due 1", "failed 1", "lag 20 s", "success 50.0%", "careful", "for a while", "no [b]", "25%")
    return all(word in text for word in words)


async def test_one_look_has_everything(home: House) -> None:
    """Due, rate, lag, success, processes, channels, newest failures; for people and for programs."""
    look = await glance(home.app.desk)
    paper = Console(file=io.StringIO(), width=140, color_system=None)
    paper.print(drawn(look))
    assert seen(paper.file.getvalue()), paper.file.getvalue()  # type: ignore[attr-defined]
    plain = orjson.loads(orjson.dumps(look.plainly()))
    assert (plain["counts"]["due"], plain["success"], plain["lag_s"]) == (1, 0.5, 20.0)
    assert [row["to"] for row in plain["failures"]] == ["bob"]


async def test_it_is_live_and_q_ends_it(home: House) -> None:
    """On a real terminal, which gets its settings back."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    shown, news = bytearray(), asyncio.Event()

    def take() -> None:
        shown.extend(os.read(ours, 65_536))
        news.set()

    asyncio.get_running_loop().add_reader(ours, take)
    with os.fdopen(theirs, "w", closefd=False) as screen:
        console = Console(file=screen, force_terminal=True, width=140, height=50, color_system=None)
        watching = asyncio.create_task(watch(home.app.desk, console, every=0.2, keys=theirs))
        try:
            async with asyncio.timeout(10):
                while not seen(shown.decode(errors="replace")):
                    news.clear()
                    await news.wait()
                os.write(ours, b"q")
                await watching
        finally:
            watching.cancel()
    assert termios.tcgetattr(theirs) == before
    asyncio.get_running_loop().remove_reader(ours)
    os.close(theirs)
    os.close(ours)


def test_one_look_for_programs(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--json` prints one look and ends; so does a pipe."""
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(program, ["top", "--json", "--database", sqlite_url])
    assert orjson.loads(told.stdout)["counts"]["due"] == 0
    piped = CliRunner().invoke(program, ["top", "--database", sqlite_url])
    assert piped.exit_code == 0 and "Newest failures" in piped.stdout


@pytest.mark.parametrize(("typed", "offered"), [("al", "alerts"), ("db m", "move"), ("top --ev", "--every")])
def test_a_shell_completes_commands_and_options(typed: str, offered: str) -> None:
    """As bash asks for it."""
    words = f"tidings {typed}"
    asked = {
        "_TIDINGS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    told = CliRunner().invoke(program, [], prog_name="tidings", env=asked)
    assert offered in told.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_is_shown_for_the_shell_that_asks() -> None:
    """What is put into its start file."""
    command = shlex.join([*COMMAND, "--show-completion"])
    told = subprocess.run(["bash", "-c", f"{command}; exit $?"], capture_output=True, text=True, check=True)
    assert "complete_bash" in told.stdout
