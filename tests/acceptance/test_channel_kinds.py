"""Channels with a provider behind them, as a user meets them: tried out, sending, paused, parked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tidings.cli.errors import run_safely
from tidings.cli.program import program
from tidings.config import ChannelSettings
from tidings.sandbox import create_sandbox

from .. import servers
from .harness import house

CANARY = "AAcanary-canary_canary0123456789abcde"
CONFIG = """
[channels.bot]
kind = "telegram"
token = "env:BOT_TOKEN"
base_url = "{url}"

[channels.wa]
kind = "whatsapp_cloud"
phone_number_id = "106540352242922"
access_token = "env:WA_TOKEN"
base_url = "{url}"

[channels.phone]
kind = "sandbox"
url = "{url}"

[channels.screen]
kind = "console"
"""


@pytest.fixture(scope="module")
def sandbox_url() -> Iterator[str]:
    """The sandbox as a process of its own."""
    command = [sys.executable, "-m", "tidings.sandbox", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1].rstrip("/")
    process.terminate()
    process.wait(timeout=30)
    process.stdout.close()


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Try = Callable[..., Answer]


@pytest.fixture
def try_(tmp_path: Path, sandbox_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Try:
    """`tidings channels test` in this process, with these tokens."""
    (tmp_path / "tidings.toml").write_text(CONFIG.format(url=sandbox_url))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def call(*words: str, bot: str = f"110201543:{CANARY}", wa: str = CANARY) -> Answer:
        monkeypatch.setenv("BOT_TOKEN", bot)
        monkeypatch.setenv("WA_TOKEN", wa)
        given = ["channels", "test", *words]
        code = run_safely(lambda **options: program(given, prog_name="tidings", **options))
        return Answer(code, *capfd.readouterr())

    return call


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bot", "bot (telegram) works: @sandbox_110201543_bot, bot 110201543"),
        ("wa", "wa (whatsapp_cloud) works: Sandbox, +1 555-2922, quality GREEN"),
        ("phone", "phone (sandbox) works: the simulated phone at"),
        ("screen", "screen (console) not tested: this kind cannot be tested without sending"),
    ],
)
def test_a_channel_is_tried_out_without_sending(try_: Try, tmp_path: Path, name: str, said: str) -> None:
    """Who we are over there; no database is made for it."""
    done = try_(name)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(said)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["bot", "wa"])
def test_a_wrong_token_is_reported_in_the_providers_words_without_the_token(try_: Try, name: str) -> None:
    """Exit code 1, a remedy, no secret (S9)."""
    done = try_(name, bot="5:wrong-canary", wa="wrong-canary")
    as_json = try_(name, "--json", bot="5:wrong-canary", wa="wrong-canary")

    assert (done.code, as_json.code) == (1, 1)
    assert "does not work: HTTP 401" in done.out and "credentials" in done.out
    trial = json.loads(as_json.out)
    assert (trial["name"], trial["works"], trial["category"]) == (name, False, "permanent")
    assert "canary" not in f"{done} {as_json}"


def test_an_unknown_name_is_one_clear_sentence(try_: Try) -> None:
    """Exit code 2, with the names that there are."""
    done = try_("pigeon")

    assert (done.code, done.out) == (2, "")
    assert "there is no channel 'pigeon'" in done.err and "bot" in done.err


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Any, str]]:
    """The sandbox's world, and where it is served from this process."""
    app = create_sandbox(None)
    async with servers.serving(app) as url:
        yield app.state.world, url
        app.state.world.close()


async def test_a_bad_token_pauses_the_bot_and_its_message_waits(tmp_path: Path) -> None:
    """A4: the work stays pending and spends no try; another bot goes on; resumed, it goes out once."""
    async with serving() as (world, url):
        channels = {
            name: ChannelSettings("telegram", {"token": f"{number}:{CANARY}", "base_url": url})
            for number, name in ((1, "bot"), (2, "other"))
        }
        async with house(f"sqlite:///{tmp_path}/t.db", channels=channels) as home:
            world.break_({"kind": "error", "code": "unauthorized", "times": 1})
            id_ = await home.accept(channel="bot", to="123456789", text="hello")
            await home.work()
            other = await home.accept(channel="other", to="123456789", text="hello")
            await home.work()
            waiting = await home.show(id_)
            bots = {bot["name"]: bot for bot in (await home.http.get("/v1/channels")).json()["items"]}

            assert (waiting["state"], waiting["attempts"]) == ("pending", 0)
            assert bots["bot"]["state"] == "paused" and "Unauthorized" in bots["bot"]["pause_reason"]
            assert (await home.show(other))["state"] == "sent"

            await home.http.post("/v1/channels/bot/resume")
            home.clock.advance(1.1)  # the attempt that was refused counts for this chat's pace
            await home.work()
            sent = await home.show(id_)
            everything = str([sent, bots, await home.show(other)])

        assert (sent["state"], sent["receipt"]) == ("sent", "123456789/3")
        assert [entry.copy for entry in world.recent] == [0, 1, 1]
        assert "canary" not in everything


async def test_a_flood_parks_the_bot_for_as_long_as_telegram_says(tmp_path: Path) -> None:
    """A4: nothing starts on the channel before that; no try is spent."""
    async with serving() as (world, url):
        channels = {"bot": ChannelSettings("telegram", {"token": f"1:{CANARY}", "base_url": url})}
        async with house(f"sqlite:///{tmp_path}/t.db", channels=channels) as home:
            world.break_({"kind": "429", "seconds": 60, "times": 1})
            ids = [await home.accept(channel="bot", to=str(100 + n), text="hello") for n in range(3)]
            await home.work()
            early = len(world.recent)
            home.clock.advance(59)
            await home.work()
            still = len(world.recent)
            for _ in range(3):  # paced at 30 a second
                home.clock.advance(2)
                await home.work()
            states = [(await home.show(id_))["state"] for id_ in ids]

    assert early == still < 3 + 1
    assert states == ["sent"] * 3
