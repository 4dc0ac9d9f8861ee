"""Secrets stay secret: every kind of channel with canaries as credentials, through success and each failure.

Searched is what people and programs get to see: pages, API, command line, log, history, and the database
itself. A backup is left out: it is a copy of that database. So is the ledger of the sandbox, which is the
other side and was given the credentials.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tidings.app import build
from tidings.cli.errors import run_safely
from tidings.cli.program import program
from tidings.config import Settings, load
from tidings.doctor import run_checks
from tidings.kernel.clock import ManualClock
from tidings.observability.log import LogOptions, log_sink
from tidings.outbound.channel_probes import probe_channel
from tidings.outbound.channels.registry import KINDS
from tidings.sandbox.providers.smtp import SmtpServer
from tidings.store.sqlite import SqliteStore

from ..contract.channels.conftest import Sandbox, serving
from .harness import AppHarness

CANARY = "c4n4ry"
ACCOUNT = "AC" + "0123456789abcdef" * 2
NUMBER = "+15550424242"  # our own, given as a reference and therefore not to be shown

SETTINGS = """
[channels.apprise]
kind = "apprise"
secret_url = "env:SECRET_URL"

[channels.console]
kind = "console"

[channels.discord]
kind = "discord"
base_url = "{url}/api/v10"
webhook_id = "1"
webhook_token = "env:CANARY"

[channels.email]
kind = "email"
host = "127.0.0.1"
port = {mail}
security = "none"
sender = "hello@example.org"
username = "desk"
password = "env:CANARY"

[channels.groupme]
kind = "groupme"
base_url = "{url}/v3"
token = "env:CANARY"

[channels.http]
kind = "http"
url = "{url}/sandbox/messages"
allow_http = true
allow_private = true
headers = {{ Authorization = "env:BEARER" }}
body = {{ id = "{{{{%message.id%}}}}", to = "{{{{%address%}}}}", text = "{{{{%message.content%}}}}" }}

[channels.noop]
kind = "noop"

[channels.sandbox]
kind = "sandbox"
url = "{url}"

[channels.slack]
kind = "slack"
base_url = "{url}/api"
token = "env:SLACK_TOKEN"

[channels.telegram]
kind = "telegram"
base_url = "{url}"
token = "env:BOT_TOKEN"
on_unknown = "resend"

[channels.twilio]
kind = "twilio"
base_url = "{url}"
account_sid = "{account}"
auth_token = "env:CANARY"
sender = "env:NUMBER"

[channels.webhook]
kind = "webhook"
url = "{url}/services/T1/B1/hook"
secrets = "env:WHSEC"
allow_http = true
allow_private = true

[channels.whatsapp_cloud]
kind = "whatsapp_cloud"
base_url = "{url}"
phone_number_id = "106540352242922"
access_token = "env:CANARY"

[channels.whatsapp_session]
kind = "whatsapp_session"
base_url = "{url}/waha"
api_key = "env:CANARY"
"""
WHSEC = "whsec_Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5"
ENVIRONMENT = {
    "CANARY": CANARY,
    "SECRET_URL": f"json://user:{CANARY}@127.0.0.1:1/",
    "BEARER": f"Bearer {CANARY}",
    "SLACK_TOKEN": f"xoxb-{CANARY}",
    "BOT_TOKEN": f"42:{CANARY}",
    "NUMBER": NUMBER,
    "WHSEC": WHSEC,
}
TO = {
    "discord": "default", "email": "ada@example.org", "groupme": "12345678", "slack": "C0123456789",
    "telegram": "4711", "twilio": "+15551234567", "webhook": "default", "whatsapp_cloud": "+15551234567",
    "apprise": "default", "whatsapp_session": "+15551234567",
}  # fmt: skip
FAULTS = ("500", "429", "404", "html", "huge", "lost", "banned", "logged_out")
PAGES = ("/", "/messages", "/channels", "/dead", "/schedules", "/broadcasts")
ROUTES = ("/v1/channels", "/v1/messages?limit=1000", "/v1/dead", "/health", "/openapi.json")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """All pretend providers behind one address."""
    async with serving() as ready:
        yield ready


@asynccontextmanager
async def mail_of(sandbox: Sandbox) -> AsyncIterator[int]:
    """The pretend mail server; gives its port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = SmtpServer(sandbox.world)
    await server.start(listening)
    try:
        yield server.port
    finally:
        await server.stop()


@asynccontextmanager
async def engine(settings: Settings) -> AsyncIterator[AppHarness]:
    """A real engine with real channels in virtual time, whose log goes to standard error."""
    clock = ManualClock()
    path = settings.database_path
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    store = SqliteStore(path, now=clock.now, inline=True)
    app = build(settings, clock=clock, store=store, emit=log_sink(LogOptions("json", "debug")))
    await app.open()
    await app.worker.node.join()
    made = AppHarness(app, clock)
    try:
        yield made
    finally:
        await made.http.aclose()
        await app.close()


async def test_no_secret_shows_anywhere_whatever_happens(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """S9, issue 4: no token, key or marked number in a log, an error, a page, an answer or the database."""
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    seen: dict[str, str] = {}
    async with mail_of(sandbox) as mail:
        config = tmp_path / "tidings.toml"
        config.write_text(SETTINGS.format(url=sandbox.url, mail=mail, account=ACCOUNT))
        settings = load(config)
        assert set(settings.channels) == set(KINDS), "a new kind of channel belongs in here, too"
        async with engine(settings) as made:
            await live(made, sandbox)
            seen |= await looked_at(made)
        seen["settings"] = f"{settings!r} {settings.describe()}"
        seen["doctor"] = str(await run_checks(settings))
        for words in ("config", "config --json", "channels list --json", "doctor"):
            code = await asyncio.to_thread(
                run_safely, lambda words=words, **options: program(words.split(), prog_name="tidings", **options)
            )
            assert code in (0, 1), words
    seen["said and logged"] = "".join(capfd.readouterr())
    assert '"event"' in seen["said and logged"], "the log was looked at"
    for file in (tmp_path / "data").iterdir():
        seen[file.name] = file.read_bytes().decode("latin-1")
    found = [place for place, text in seen.items() if any(secret in text for secret in (CANARY, NUMBER, WHSEC))]
    assert not found, {place: around(seen[place]) for place in found}


async def live(made: AppHarness, sandbox: Sandbox) -> None:
    """Send on every channel: well, through each fault, and what is refused at once."""
    for fault in (None, *FAULTS, None, None):
        sandbox.world.heal()
        if fault is not None:
            sandbox.break_(fault)
        for channel in KINDS:
            await made.http.post(
                "/v1/messages", json={"channel": channel, "to": TO.get(channel, "ada"), "text": f"{fault}"}
            )
            await made.http.post("/v1/messages", json={"channel": channel, "to": "\u0000?", "text": ""})
        await made.work()
        for channel in KINDS:
            await made.http.post(f"/v1/channels/{channel}/resume")
        made.clock.advance(minutes=2)
    for _ in range(10):  # a slow machine misses the instants that a rate gives, and gets others
        await made.work()
        made.clock.advance(minutes=2)


async def looked_at(made: AppHarness) -> dict[str, str]:
    """Everything that people and programs can ask for."""
    seen = {}
    for path in (*PAGES, *ROUTES):
        answer = await made.http.get(path)
        assert answer.status_code in (200, 503), path  # some channels are stopped
        seen[path] = answer.text
    messages = await made.everything()
    assert {m["channel"] for m in messages if m["state"] == "sent"} == set(KINDS) - {"apprise", "webhook"}
    for message in messages:
        seen[f"message {message['id']}"] = orjson.dumps(await made.show(message["id"])).decode()
        seen[f"page {message['id']}"] = (await made.http.get(f"/messages/{message['id']}")).text
    for name, channel in made.app.channels.items():
        trial: Any = await probe_channel(made.app.channels, name)
        seen[f"test of {name}"] = f"{trial} {channel!r} {vars(channel).get('_settings')!r}"
    return seen


def around(text: str) -> str:
    """The place where it shows."""
    at = min(text.find(secret) for secret in (CANARY, NUMBER, WHSEC) if secret in text)
    return text[max(0, at - 80) : at + 40]
