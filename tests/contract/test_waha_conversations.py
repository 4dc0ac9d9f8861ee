"""WAHA both ways over real HTTP: two sessions behind one webhook address, linked ids, edits, replies."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tidings.api import errors
from tidings.api.routes import callbacks
from tidings.app import App, build
from tidings.config import load
from tidings.kernel.clock import ManualClock
from tidings.model.message import Draft
from tidings.sandbox.environment import SandboxEnvironment
from tidings.store.port import Row
from tidings.store.sqlite import SqliteStore

from .. import servers
from .channels.conftest import Sandbox, serving

ADA, LID, HIDDEN = "15551234567@c.us", "10015551234567@lid", "7712345678@lid"
GROUP = "120363041234567890@g.us"
KEY = "canary-hmac-key"
CONFIG = """
[channels.home]
kind = "whatsapp_session"
base_url = "{url}/waha"
api_key = "key"
hmac_key = "canary-hmac-key"

[channels.office]
kind = "whatsapp_session"
base_url = "{url}/waha"
api_key = "key"
hmac_key = "canary-hmac-key"
session = "gows-office"

[inbound]
enabled = true
squads = ["34"]
[inbound.replies]
at_home = "home"
at_work = "office"
[inbound.sources.at_home]
kind = "waha"
channel = "home"
[inbound.sources.at_work]
kind = "waha"
channel = "office"
"""


class Talk:
    """An engine that hears two sessions through the address of one of them."""

    def __init__(self, app: App, sandbox: Sandbox, http: httpx.AsyncClient) -> None:
        self.app, self.sandbox, self.http = app, sandbox, http

    async def say(self, text: str, *, session: str = "default", chat: str = "", sender: str = ADA, **more: Any) -> int:
        """A person writes; the server calls, and the engine works."""
        said = {"channel": "waha", "account": session, "chat": chat or sender, "sender": sender, "text": text, **more}
        answer = await self.http.post(f"{self.sandbox.url}/sandbox/said", json=said)
        await self.work()
        return int(answer.json()["n"])

    async def work(self) -> None:
        """Deliver the webhooks, handle what came in, send what is due."""
        await self.sandbox.world.callbacks.idle()
        assert {made.answer for made in self.sandbox.world.callbacks.made} <= {200}
        await self.app.worker.node.beat()
        await next(actor for actor in self.app.actors if actor.name == "session_monitor").step()
        while (await self.app.worker.runner.step()).claimed:
            pass

    async def inbox(self) -> list[Row]:
        """All that was filed, oldest first."""
        return list((await self.app.inbound.inbox.page(limit=100)).items)[::-1]

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Whom the sandbox delivered what."""
        return [(entry.to, entry.text) for entry in self.sandbox.ledger if entry.delivered]


@asynccontextmanager
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """The engine and the sandbox on free ports, on one clock; both sessions call the address of `home`."""
    clock = ManualClock()
    store = SqliteStore(tmp_path / "t.db", now=clock.now, inline=True)
    environment = SandboxEnvironment(wall=clock.now)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with serving(environment=environment) as sandbox, httpx.AsyncClient() as http:
            (tmp_path / "tidings.toml").write_text(CONFIG.format(url=sandbox.url))
            (tmp_path / "tidings.toml").chmod(0o600)
            app = build(load(environ={}, folder=tmp_path, flags={"public_url": url}), clock=clock, store=store)
            await app.open()
            await app.worker.node.join()
            for source in ("at_home", "at_work"):
                await app.inbound.roster.put({"source": source, "sender": ADA, "name": "Ada", "squad": "34"})
            api = FastAPI()
            api.include_router(callbacks.routes(app.outbound))
            errors.install(api)
            async with servers.serving(api, taken=taken):
                await http.post(f"{sandbox.url}/sandbox/waha/gows-office", json={"status": "WORKING"})
                await http.post(
                    f"{sandbox.url}/sandbox/callbacks",
                    json={"channel": "waha", "account": "*", "url": f"{url}/callbacks/home", "secret": KEY},
                )
                clock.advance(1)
                yield Talk(app, sandbox, http)
            await app.close()


async def test_a_reply_goes_back_to_the_chat_and_session_that_it_came_from(tmp_path: Path) -> None:
    """The session in the event decides the source; a linked id becomes the number; the answer arrives."""
    async with talk(tmp_path) as here:
        await here.say("Add a crew for 34 tomorrow night", session="default", sender=LID, name="Ada L")
        await here.say("Add a crew for 34 tomorrow night", session="gows-office", chat=GROUP, sender=LID, name="Ada L")
        rows = await here.inbox()

        assert [(row["source"], row["sender"], row["chat"], row["name"]) for row in rows] == [
            ("at_home", ADA, ADA, "Ada L"),
            ("at_work", ADA, GROUP, "Ada L"),
        ]
        assert [to for to, _ in here.sent] == [ADA, GROUP]
        used = [request.json["session"] for request in here.sandbox.requests if request.path.endswith("/sendText")]
        assert used == ["default", "gows-office"]
        asked = [request.path for request in here.sandbox.requests if "/lids/" in request.path]
        assert asked == [f"/waha/api/default/lids/{LID}", f"/waha/api/gows-office/lids/{LID}"]


async def test_a_hidden_number_keeps_its_linked_id_and_can_be_on_the_roster(tmp_path: Path) -> None:
    """Never skipped without a word: the reason says what to do, and then it works."""
    async with talk(tmp_path) as here:
        await here.say("Add a crew for 34 tomorrow night", sender=HIDDEN)
        (row,) = await here.inbox()
        assert (row["state"], row["sender"]) == ("skipped", HIDDEN)
        assert (
            row["reason"] == f"unknown sender {HIDDEN}: not on the roster, and WhatsApp hides the number; add this id"
        )

        await here.app.inbound.roster.put({"source": "at_home", "sender": HIDDEN, "name": "Bo", "squad": "34"})
        await here.say("Add a crew for 34 tomorrow night", sender=HIDDEN)
        assert [to for to, _ in here.sent] == [HIDDEN]


@pytest.mark.parametrize("session", ["default", "gows-office"])
async def test_every_edit_counts_and_status_posts_do_not(tmp_path: Path, session: str) -> None:
    """WEBJS repeats the id of the edited message in every edit; each has an event of its own."""
    async with talk(tmp_path) as here:
        n = await here.say("good morning", session=session, sender=LID)
        for text in ("good evening", "good night", "good evening"):
            here.app.clock.advance(1)  # type: ignore[attr-defined]
            await here.say(text, session=session, sender=LID, edits=n)
        await here.say("look at my holidays", session=session, chat="status@broadcast")
        rows = await here.inbox()

        assert [row["kind"] for row in rows] == ["message", "edit", "edit", "edit"]
        assert rows[0]["edited_text"] == "good evening"
        await here.say("", session=session, sender=LID, deletes=n)
        assert (await here.inbox())[0]["deleted_at"] is not None


async def test_the_engine_starts_and_restarts_its_session(tmp_path: Path) -> None:
    """E7, over HTTP and with the engine's own wiring: stopped, failed, and working only by its own word."""
    async with talk(tmp_path) as here:
        clock, texts = here.app.clock, iter(range(100))
        assert isinstance(clock, ManualClock)

        async def send(times: int = 1) -> list[str]:
            drafts = [Draft("home", f"+1555123450{n}", f"text {next(texts)}") for n in range(times)]
            return [(await here.app.messages.accept(draft)).id for draft in drafts]

        async def states(ids: list[str]) -> set[tuple[str, bool]]:
            shown = [await here.app.messages.show(id_) for id_ in ids]
            return {(row["state"], bool(row["unknown"])) for row in shown}

        async def pass_time(seconds: int) -> None:
            for _ in range(seconds):
                clock.advance(1)
                await here.work()

        def actions() -> list[str]:
            paths = [one.path for one in here.sandbox.requests if one.method == "POST" and "/sessions/" in one.path]
            return [path.rpartition("/")[2] for path in paths]

        await pass_time(1)
        for state, action in (("STOPPED", "start"), ("FAILED", "restart")):
            clock.advance(90)  # a session that has lasted a minute starts with the shortest delay
            await pass_time(1)
            await here.http.post(f"{here.sandbox.url}/sandbox/waha/default", json={"status": state})
            ids = await send()
            await pass_time(8)
            assert await states(ids) == {("sent", False)}
            assert actions()[-1:] == [action]

        clock.advance(3600)
        await pass_time(1)
        here.sandbox.break_("500", times=3)
        failed = await send(3)
        await here.work()
        waiting = await send()
        await here.work()
        assert (await states(failed), await states(waiting)) == ({("failed", True)}, {("pending", False)})
        await pass_time(7)
        assert await states(waiting) == {("sent", False)}
        assert actions() == ["start", "restart", "restart"]


async def test_a_session_without_a_source_is_not_filed_under_another(tmp_path: Path) -> None:
    """A third session behind the same address: skipped, with the reason."""
    async with talk(tmp_path) as here:
        await here.say("Add a crew for 34 tomorrow night", session="private")
        (row,) = await here.inbox()
        assert (row["state"], row["reason"]) == ("skipped", "sent to private, which no source has")
        assert here.sent == []
