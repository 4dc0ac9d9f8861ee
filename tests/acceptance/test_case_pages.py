"""The faces of workflows: a chat through the whole engine, its conversation page and cases (D10-D14)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest

from tidings.config import ChannelSettings, InboundSettings
from tidings.inbound.sources.settings import read_source
from tidings.inbound.workflow.settings import read as read_workflow
from tidings.model.errors import Misconfigured
from tidings.model.time import SECOND, iso
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from .harness import AppHarness
from .harness import house as housed

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CREW = read_source("crew", {"kind": "webhook", "secrets": [SECRET]}, production=True)


@pytest.fixture
async def house(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine with one source and workflows by the rules."""
    workflow = read_workflow({"enabled": True, "admins": ["out:boss"], "runner": "plain"})
    channels = {"crew": ChannelSettings("noop"), "out": ChannelSettings("noop")}
    inbound = InboundSettings(sources={"crew": CREW}, workflow=workflow)
    async with housed(sqlite_url, inbound=inbound, channels=channels) as made:
        await made.http.put("/v1/roster", json={"sender": "u7", "name": "Ann <b>", "squad": "42"})
        yield made


async def say(house: AppHarness, number: int, text: str) -> None:
    """Ann says something in the group, and the engine works on it."""
    house.clock.advance(1)
    said = {"id": str(number), "conversation": "9", "sender": "u7", "name": "Ann", "text": text}
    body = orjson.dumps({**said, "at": iso(house.clock.now())})
    signed = signature_headers([parse_secret(SECRET)], f"m{number}", house.clock.now() // SECOND, body)
    assert (await house.client().post("/inbound/crew", content=body, headers=signed)).status_code == 200
    await house.work()


async def test_a_chat_becomes_a_shift_and_every_step_can_be_seen(house: AppHarness) -> None:
    """From the call to the calendar by the rules; intent, days, state and reply on one page."""
    await say(house, 1, "we can cover sunday & 'more'")
    await say(house, 2, "0600-1200")

    texts = [message["text"] for message in await house.everything()]
    assert texts[0] == "Done:\n✓ a crew for 42, Sun 17 Jan 0600-1200"
    assert texts[1].startswith("Which hours")
    talk = (await house.http.get("/v1/conversations/crew/9")).json()
    assert [line["decision"] for line in talk["lines"] if line["kind"] == "message"] == ["started", "resumed"]
    assert [flow["state"] for flow in talk["workflows"]] == ["completed"]
    shown = (await house.http.get("/conversations/crew/9")).text
    for words in ("Ann &lt;b&gt;", "sunday &amp; ", "Intent: yes", "Calendar read: 20270117", "new → waiting_for"):
        assert words in shown
    assert "crew/9" in (await house.http.get("/conversations")).text
    assert (await house.http.get("/conversations/nowhere/1")).status_code == 404
    compared = await house.app.workflows.replay("crew/9", by_rules=True)
    assert [each.is_changed for each in compared] == [False, False]


async def test_a_case_is_claimed_answered_and_handed_back_on_its_page(house: AppHarness) -> None:
    """Buttons and API do the same; a wrong move is told in a sentence."""
    await say(house, 1, "no crew for squad 99 saturday night")
    await say(house, 2, "squad 98")
    await say(house, 3, "squad 97")
    items = (await house.http.get("/v1/cases")).json()["items"]
    assert [item["reason"] for item in items] == ["unclear"]
    case = items[0]["id"]
    assert case in (await house.http.get("/cases")).text

    early = await house.http.post(f"/cases/{case}/answer", data={"text": "hi"})
    assert early.status_code == 303 and "problem=" in early.headers["location"]
    assert (await house.http.post(f"/cases/{case}/claim", data={"by": "Eve"})).status_code == 303
    assert (await house.http.post(f"/v1/cases/{case}/claim", json={"by": "Mal"})).status_code == 409
    said = await house.http.post(f"/v1/cases/{case}/answer", json={"text": "Which squad?"})
    assert said.json()["state"] == "answered"
    await house.work()
    assert "Which squad?" in [message["text"] for message in await house.everything()]
    assert "Send reply" in (await house.http.get(f"/cases/{case}")).text
    back = await house.http.post(f"/v1/cases/{case}/handback")
    assert (back.status_code, back.json()["state"]) == (200, "closed")

    (notice,) = (await house.http.get("/v1/notices")).json()["items"]
    assert (await house.http.post(f"/notices/{notice['id']}/acknowledge", data={})).status_code == 303
    assert (await house.http.get("/v1/notices")).json()["items"][0]["acknowledged_by"] == "the dashboard"
    for path in ("/v1/cases?state=lost", "/v1/cases?reason=none"):
        assert (await house.http.get(path)).status_code == 422


async def test_a_channel_that_is_not_there_stops_the_start(sqlite_url: str) -> None:
    """Replies and admins need channels; said before anything is opened."""
    for given in ({"enabled": True}, {"enabled": True, "admins": ["pager:ada"], "replies": {"crew": "out"}}):
        inbound = InboundSettings(sources={"crew": CREW}, workflow=read_workflow(given))
        with pytest.raises(Misconfigured, match="which is not configured"):
            async with housed(sqlite_url, inbound=inbound):
                raise AssertionError("not reached")
