"""Fixture for browser tests: a serving engine with sample data, and Chromium."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from playwright.async_api import Browser, Page, async_playwright

from tidings.api import create_api
from tidings.app import App, build
from tidings.cli.http_server import HttpServer
from tidings.cli.ports import listen, port_of
from tidings.config import ChannelSettings, InboundSettings, Settings
from tidings.dashboard import add_dashboard
from tidings.inbound.sources.port import WebhookRequest
from tidings.inbound.sources.settings import read_source
from tidings.inbound.workflow.settings import read as read_workflow
from tidings.migration.job_file import read_job
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Unknown
from tidings.model.task import Category
from tidings.model.time import SECOND, iso
from tidings.outbound.alerts.evaluator import AlertEvaluator
from tidings.outbound.channels.noop import NoopSettings
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from ..acceptance.harness import ScriptedNoopChannel
from ..contract.channels.conftest import serving as serving_sandbox
from ..time_limits import Limit

AXE = Path(__file__).parent / "axe" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHANNELS = {"phone": ChannelSettings("noop"), "mail": ChannelSettings("noop", {"on_unknown": "hold"})}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SAID = (
    ("8", "we can cover sunday 0600-1200"),
    ("9", "no crew for squad 99 saturday night"),
    ("9", "squad 98"),
    ("9", "squad 97"),
)
PEOPLE = ("Ada Lovelace", "Grace Hopper", "Joan Clarke", "Katherine Johnson", "Hedy Lamarr")


class Stage(NamedTuple):
    """A serving engine."""

    app: App
    url: str
    phone: str  # URL of the sandbox phone


def chromium() -> str | None:
    """Return the path of Chromium on this machine, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@asynccontextmanager
async def serving(database: str) -> AsyncIterator[Stage]:
    """Serve everything in this process, as `tidings serve` does, with channels that send nothing."""
    async with serving_sandbox() as sandbox, _serving(database, sandbox.url) as stage:
        yield stage


def _inbound() -> InboundSettings:
    crew = read_source("crew", {"kind": "webhook", "secrets": [SECRET]}, production=True)
    workflow = read_workflow({"enabled": True, "admins": ["phone:boss"], "runner": "plain"})
    return InboundSettings(sources={"crew": crew}, workflow=workflow)


@asynccontextmanager
async def _serving(database: str, phone: str) -> AsyncIterator[Stage]:
    listening = listen("127.0.0.1", 0, remedy="")
    linked = {"base_url": f"{phone}/waha", "api_key": "sandbox"}
    channels = {
        **CHANNELS,
        "crew": ChannelSettings("noop"),
        "chat": ChannelSettings("sandbox", {"url": phone}),
        "whatsapp": ChannelSettings("whatsapp_session", linked),
    }
    settings = Settings(
        database=database, port=port_of(listening), channels=channels, sandbox=False, events_private=True,
        inbound=_inbound(), encryption_keys=("7e57" * 16,),
    )  # fmt: skip
    app = build(settings)
    for name, on_unknown in (("phone", "resend"), ("mail", "hold")):
        channel = ScriptedNoopChannel(NoopSettings(on_unknown=cast(Any, on_unknown)))
        channel.script = answer
        cast(Any, app.channels)[name] = channel
    await app.open()
    api = create_api(app)
    pages = add_dashboard(api, app)
    server = HttpServer(api, listening)
    await server.begin()
    app.worker.start()
    try:
        yield Stage(app, f"http://127.0.0.1:{settings.port}", phone)
    finally:
        pages.close()
        await server.end()
        await app.close()
        listening.close()


def answer(message: Message) -> Outcome:
    """Return the outcome of a send: rejected for `gone`, unknown for `silent`, otherwise done."""
    if message.recipient.startswith("gone"):
        return Reject(Category.PERMANENT, "no such number")
    if message.recipient.startswith("silent"):
        return Unknown("the line went dead after the text had left")
    return Done("receipt-1")


class Sample(NamedTuple):
    """Ids of the sample data."""

    contact: str
    list: str
    message: str
    broadcast: str
    schedule: str
    subscription: str
    job: str


async def fill(app: App) -> Sample:
    """Create sample data of every kind, as of a relief organization."""
    desk, timezone = app.outbound, app.settings.timezone
    contacts = [
        await desk.contacts.create(
            {"name": name, "addresses": {"phone": name.split()[0].lower()}, "tags": ["volunteer"],
             "language": "en", "attributes": {"town": "Bonn"}},
        )
        for name in PEOPLE
    ]  # fmt: skip
    crew = await desk.audience.create({"name": "volunteers", "filter": {"tags_all": ["volunteer"]}})
    await desk.audience.create({"name": "drivers"})
    await desk.suppressions.create({"address": "hedy", "channel": "phone", "reason": "asked by phone"})
    await desk.templates.create(
        {"name": "rain-warning", "text": "Hello {{ contact.name }}, heavy rain in {{ town }} tonight.",
         "variables": {"town": {"type": "text", "example": "Bonn"}}}
    )  # fmt: skip
    told = await desk.subscriptions.add({"url": "http://127.0.0.1:9/hook", "events": ["broadcast.*"]})
    daily = await desk.schedules.create(
        {"name": "Morning round", "rule": {"daily": "09:00"}, "timezone": "Europe/Berlin",
         "message": {"channel": "phone", "to": "ada", "text": "Good morning. Who drives today?"}},
        timezone=timezone,
    )  # fmt: skip
    await desk.schedules.create(
        {"name": "Weekly report", "rule": {"weekly": "mon, thu 17:30"},
         "broadcast": {"channel": "phone", "list": "volunteers", "text": "The report is out."}},
        timezone=timezone,
    )  # fmt: skip
    news = await desk.broadcast_creator.create(
        {"name": "Flood warning", "channel": "phone", "list": "volunteers", "template": "rain-warning",
         "variables": {"town": "Bonn"}, "trigger": "MANUAL"}
    )  # fmt: skip
    await desk.broadcast_creator.create(
        {"name": "Thank you", "channel": "phone", "addresses": ["ada", "grace"], "text": "Thank you",
         "in": "2d"}
    )  # fmt: skip
    sent = [await _send(app, to=name.split()[0].lower(), text="See you at nine") for name in PEOPLE]
    for number in range(3):
        await _send(app, to=f"gone-{number}", text="Are you there?")
    await _send(app, to="silent-1", channel="mail", text="The papers, as promised")
    for hours in (2, 5, 26, 30, 50, 75):
        await _send(app, to="grace", text="Do not forget the keys", **{"in": f"{hours}h"})
    await desk.rollout.set("mail", mode="live", share=25, reason="first week")
    await _send(app, to="ada", channel="chat", text="Can you drive on Sunday?")
    await _hear(app)
    job = await _move(app)
    ids = [made.answer["id"] for made in (contacts[0], crew, news, daily, told)]
    return Sample(ids[0], ids[1], sent[0], ids[2], ids[3], ids[4], job)


async def _hear(app: App) -> None:
    """Receive a clear shift request, and one that needs a person."""
    await app.inbound.roster.put({"sender": "u7", "name": "Ann", "squad": "42"})
    for number, (conversation, text) in enumerate(SAID):
        now = app.clock.now()
        said = {"id": str(number), "conversation": conversation, "sender": "u7", "name": "Ann", "text": text}
        body = json.dumps({**said, "at": iso(now)}).encode()
        signed = signature_headers([parse_secret(SECRET)], f"m{number}", now // SECOND, body)
        await app.inbound.webhooks.call("crew", WebhookRequest(signed, {}, body))


async def _move(app: App) -> str:
    """Create a migration of twenty people, two of them with invalid addresses; return its id."""
    assert app.settings.database_path is not None
    folder = app.settings.database_path.absolute().parent
    for name in ("old", "new"):
        (folder / name).mkdir()
    people = [
        {"id": str(n), "name": f"P {n}", "mail": "nobody" if n in (3, 7) else f"p{n}@example.org"} for n in range(20)
    ]
    (folder / "old" / "persons.ndjson").write_text("".join(json.dumps(one) + "\n" for one in people))
    fields = {"name": "name", "mail": {"path": "mail", "type": "email"}}
    job = read_job(
        {
            "name": "Volunteers of the old system",
            "source": {"kind": "ndjson", "path": str(folder / "old")},
            "target": {"kind": "ndjson", "path": str(folder / "new")},
            "types": {"people": {"from": "persons", "fields": fields}},
        },
        is_local=True,
    )
    return (await app.migrations.create(job, by="ada")).id


async def disappoint(app: App) -> None:
    """Send a dozen messages that fail."""
    for number in range(12):
        await _send(app, to=f"gone-too-{number}", text="Hello?")


async def watch(app: App) -> None:
    """Evaluate alerts now instead of after 15 seconds."""
    await AlertEvaluator(app.store, app.clock, app.messages, app.outbound.alerts.figures)._evaluate(0.0)


async def _send(app: App, *, channel: str = "phone", **fields: str) -> str:
    from tidings.outbound.draft_parser import DraftParser

    reading = DraftParser(now=app.clock.now(), timezone=app.settings.timezone)
    accepted = await app.outbound.messages.accept(reading.draft({"channel": channel, **fields}))
    return str(accepted.id)


async def settled(page: Page, url: str) -> None:
    """Wait until the overview shows the expected failures."""
    await page.goto(url)
    await page.locator(".tile.failed dd a", has_text="3").wait_for()
    await page.locator(".tile.uncertain dd a", has_text="1").wait_for()


async def first_of(page: Page, url: str) -> str:
    """Return the link of the first row, once the list has one: messages are processed in the background."""
    limit = Limit(60)
    while True:
        await page.goto(url)
        rows = page.locator(".rows a.row")
        if await rows.count():
            return str(await rows.first.get_attribute("href"))
        assert not limit.is_over(), f"{url} stays empty"


def places(sample: Sample) -> list[str]:
    """Return every page: those of the navigation, and one of each kind behind them."""
    from tidings.dashboard.navigation import GROUPS

    linked = [entry.path for group in GROUPS for entry in group.entries]
    return [
        "/",
        *linked,
        f"/messages/{sample.message}",
        f"/broadcasts/{sample.broadcast}",
        "/broadcasts/new?list=volunteers&template=rain-warning",
        f"/schedules/{sample.schedule}",
        f"/schedules/{sample.schedule}/edit",
        "/schedules/new",
        "/templates/rain-warning",
        "/templates/new",
        f"/contacts/{sample.contact}",
        "/contacts/new",
        f"/lists/{sample.list}",
        f"/subscriptions/{sample.subscription}",
        f"/migrations/{sample.job}",
        "/conversations/crew/8",
        "/channels/phone",
        "/channels/whatsapp",
        "/rollout/mail",
        "/sign-in",
    ]


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Start headless Chromium."""
    async with async_playwright() as playwright:
        # Root, as in a container, has no sandbox.
        started = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield started
        finally:
            await started.close()
