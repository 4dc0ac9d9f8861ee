"""`tidings top` and shell completion: the terminal's own comforts."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import shlex
import shutil
import signal
import subprocess
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tidings.cli.program import full_program
from tidings.cli.top import render, watch
from tidings.model.outcome import Done, Reject
from tidings.model.task import Category
from tidings.outbound.summary import read_summary

from ..time_limits import within
from .harness import AppHarness, house
from .program import COMMAND


@pytest.fixture
async def home(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine that has sent one, failed one, and has one due."""
    async with house(sqlite_url) as built:
        built.script("out", lambda m: Done() if m.recipient == "ada" else Reject(Category.PERMANENT, "no [b]"))
        await built.accept(to="ada")
        await built.accept(to="bob")
        await built.work()
        await built.app.outbound.channels.pause("careful", reason="for a while")
        await built.accept(to="cyd")
        built.clock.advance(20)
        await built.app.worker.node.beat('{"concurrency": 10, "in_flight": 0, "memory": 0.25}')
        yield built


def seen(text: str) -> bool:
    """Whether it shows what is going on."""
    words = ("due 1", "failed 1", "lag 20 s", "success 50.0%", "careful", "for a while", "no [b]", "25%")
    return all(word in text for word in words)


async def test_one_look_has_everything(home: AppHarness) -> None:
    """Due, rate, lag, success, processes, channels, newest failures; for people and for programs."""
    look = await read_summary(home.app.outbound)
    paper = io.StringIO()
    Console(file=paper, width=140, color_system=None).print(render(look))
    assert seen(paper.getvalue()), paper.getvalue()
    plain = orjson.loads(orjson.dumps(look.plainly()))
    assert (plain["counts"]["due"], plain["success"], plain["lag_s"]) == (1, 0.5, 20.0)
    assert [row["to"] for row in plain["failures"]] == ["bob"]


async def test_it_is_live_and_q_ends_it(home: AppHarness) -> None:
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
        watching = asyncio.create_task(watch(home.app.outbound, console, every=0.2, keys=theirs))
        try:
            async with within(10):
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


class Paper(io.StringIO):
    """A screen that says when something was render on it."""

    def __init__(self) -> None:
        super().__init__()
        self.news = asyncio.Event()

    def write(self, text: str) -> int:
        self.news.set()
        return super().write(text)


async def test_it_is_live_where_no_key_can_be_pressed(home: AppHarness) -> None:
    """Only its screen is a terminal, as under a supervisor: Ctrl-C ends it, and nothing goes wrong before."""
    paper = Paper()
    console = Console(file=paper, force_terminal=True, width=140, height=50, color_system=None)
    nobody = os.open(os.devnull, os.O_RDONLY)
    watching = asyncio.create_task(watch(home.app.outbound, console, every=0.2, keys=nobody))
    try:
        async with within(30):
            while not seen(paper.getvalue()):
                paper.news.clear()
                await paper.news.wait()
            os.kill(os.getpid(), signal.SIGINT)
            await watching
    finally:
        watching.cancel()
        os.close(nobody)


def test_one_look_for_programs(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--json` prints one look and ends; so does a pipe."""
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(full_program(), ["top", "--json", "--database", sqlite_url])
    assert orjson.loads(told.stdout)["counts"]["due"] == 0
    piped = CliRunner().invoke(full_program(), ["top", "--database", sqlite_url])
    assert piped.exit_code == 0 and "Newest failures" in piped.stdout


def offered(typed: str, **env: str) -> list[str]:
    """What bash is told when the tabulator key is pressed."""
    words = f"tidings {typed}"
    asked = {
        "_TIDINGS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
    }
    told = CliRunner().invoke(full_program(), [], prog_name="tidings", env=asked | env)
    assert not told.stderr
    return told.stdout.split()


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("al", "alerts"),
        ("db m", "move"),
        ("top --ev", "--every"),
        ("messages list --state s", "sent"),
        ("channels show ", "phone"),
        ("send --channel ph", "phone"),
    ],
)
def test_a_shell_completes_commands_options_and_words(typed: str, word: str) -> None:
    """As bash asks for it; what it offers fits what was typed."""
    found = offered(typed)
    assert word in found and all(one.startswith(typed.rpartition(" ")[2]) for one in found)


def test_a_shell_completes_what_is_in_the_database(sqlite_url: str) -> None:
    """Ids and names, each where it is asked for; nothing where there is nothing, and never an error."""

    async def fill() -> list[str]:
        async with house(sqlite_url) as built:
            desk = built.app.outbound
            await desk.templates.create({"name": "welcome", "text": "hello"})
            await desk.audience.create({"name": "volunteers"})
            return [await built.accept(to="ada"), await built.accept(to="bob")]

    first, second = asyncio.run(fill())

    assert offered("messages show ", TIDINGS_DATABASE=sqlite_url) == [second, first]
    assert offered(f"messages why -d {sqlite_url} {first}") == [first]
    assert offered("templates show w", TIDINGS_DATABASE=sqlite_url) == ["welcome"]
    assert offered("broadcasts create --list ", TIDINGS_DATABASE=sqlite_url) == ["volunteers"]
    for word in ("broadcasts show ", "schedules show ", "dead retry "):
        assert not offered(word, TIDINGS_DATABASE=sqlite_url)
    assert not offered("messages show ", TIDINGS_DATABASE="postgresql://nobody@127.0.0.1:9/none")


def test_completing_makes_no_database(tmp_path: Path) -> None:
    """Whoever only presses a key finds no file afterwards."""
    assert not offered("messages show ", TIDINGS_DATABASE=f"sqlite:///{tmp_path}/data/tidings.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_is_shown_for_the_shell_that_asks() -> None:
    """What is put into its start file."""
    command = shlex.join([*COMMAND, "--show-completion"])
    told = subprocess.run(["bash", "-c", f"{command}; exit $?"], capture_output=True, text=True, check=True)
    assert "complete_bash" in told.stdout
