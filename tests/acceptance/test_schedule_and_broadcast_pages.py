"""The dashboard pages of schedules and broadcasts, with and without JavaScript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject
from tidings.model.task import Category
from tidings.outbound.service import OutboundService

from .harness import AppHarness, house
from .test_dashboard import forms, read, text

both = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on SQLite, or on what the test names."""
    on_postgres = getattr(request, "param", "sqlite") == "postgres"
    async with house(request.getfixturevalue("postgres_url") if on_postgres else sqlite_url) as built:
        yield built


def desk(home: AppHarness) -> OutboundService:
    """What the faces use."""
    return home.app.outbound


async def broadcast(home: AppHarness, *people: str, **more: Any) -> str:
    """A frozen broadcast that waits for its trigger; gives its id."""
    body = {"name": "News", "channel": "out", "text": "hello", "trigger": "MANUAL", "addresses": [*people]}
    made = await desk(home).broadcast_creator.create(body | more)
    return str(made.answer["id"])


@both
async def test_a_broadcast_is_listed_with_progress_and_shown_with_counts(home: AppHarness) -> None:
    """B1, B7: state, n of N and the exact tally; only the buttons that its state allows."""
    id_ = await broadcast(home, "ada", "grace", "joan")

    listed, page = await read(home, "/broadcasts"), await read(home, f"/broadcasts/{id_}")

    assert "0 of 3" in text(listed) and "News" in text(listed)
    assert "waiting 3" in text(page)
    assert forms(page) == {f"/broadcasts/{id_}/trigger", f"/broadcasts/{id_}/cancel"}


@both
async def test_a_broadcast_is_started_paused_and_resumed_by_its_buttons(home: AppHarness) -> None:
    """B1: each button leads back to the page; what the state does not allow is said, not done."""
    id_ = await broadcast(home, "ada", "grace")

    for action, state in (("trigger", "running"), ("pause", "paused"), ("resume", "running")):
        answer = await home.http.post(f"/broadcasts/{id_}/{action}")
        assert answer.status_code == 303
        assert state in text(await read(home, f"/broadcasts/{id_}"))
    refused = await home.http.post(f"/broadcasts/{id_}/resume", follow_redirects=True)
    assert refused.status_code == 200
    assert (await home.http.post(f"/broadcasts/{id_}/explode")).status_code == 404
    assert (await home.http.get("/broadcasts/nowhere")).status_code == 404


async def test_broadcast_recipients_are_listed_with_their_state(home: AppHarness) -> None:
    """Who failed and why; the count on the button that retries them."""

    def answer(message: Message) -> Outcome:
        gone = Reject(Category.PERMANENT, "no such number")
        return gone if message.recipient == "grace" else Done()

    home.script("out", answer)
    id_ = await broadcast(home, "ada", "grace")
    await home.http.post(f"/broadcasts/{id_}/trigger")
    await home.work()

    page = text(await read(home, f"/broadcasts/{id_}"))
    failed = text(await read(home, f"/broadcasts/{id_}?state=failed"))

    assert "sent 1" in page and "failed 1" in page
    assert "Retry failed (1)" in page
    assert "no such number" in failed and "ada" not in failed.partition("Recipients")[2]


@both
async def test_broadcast_pages_have_live_fragments(home: AppHarness) -> None:
    """Fragments, as for messages; a script asks for them with `now`."""
    id_ = await broadcast(home, "ada")

    everything = (await home.http.get("/broadcasts/live?now")).json()
    one = (await home.http.get(f"/broadcasts/{id_}/live?now")).json()

    assert "News" in everything["broadcasts"]
    assert "waiting" in one["status"] and "trigger" in one["actions"]


@both
async def test_a_schedule_is_listed_and_shown_with_upcoming_occurrences(home: AppHarness) -> None:
    """A8: its rule in words, the next firings in its own zone, and what became of the last ones."""
    body = {
        "name": "Morning",
        "rule": {"daily": "09:00"},
        "timezone": "Europe/Berlin",
        "message": {"channel": "out", "to": "ada", "text": "Good morning"},
    }
    made = await home.http.post("/v1/schedules", json=body)
    assert made.status_code == 201, made.text
    id_ = made.json()["id"]

    listed, page = text(await read(home, "/schedules")), text(await read(home, f"/schedules/{id_}"))

    assert "Morning" in listed and "Europe/Berlin" in listed
    assert page.count("09:00") >= 10
    paused = await home.http.post(f"/schedules/{id_}/pause", follow_redirects=True)
    assert "paused" in text(paused.text)
    ran = await home.http.post(f"/schedules/{id_}/run", follow_redirects=True)
    assert "created" in text(ran.text)
    ended = await home.http.post(f"/schedules/{id_}/end", follow_redirects=True)
    assert "This schedule has ended" in text(ended.text)
    assert forms(ended.text) == set()


async def test_empty_broadcast_and_schedule_lists_show_a_command(home: AppHarness) -> None:
    """A command to copy, which works as it stands."""
    assert "tidings broadcasts create" in text(await read(home, "/broadcasts"))
    assert "tidings schedules add" in text(await read(home, "/schedules"))
