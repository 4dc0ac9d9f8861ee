"""Ten thousand messages for the same second (A2, B2, F36)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel.clock import Clock
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome
from tidings.model.time import SECOND
from tidings.outbound.channels.noop import NoopChannel

_RUSH = 10_000
_URGENT = 100
_SLOTS = 200


class Door(NoopChannel):
    """Notes who came when, and how many were in it at once."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.came: list[tuple[int, str]] = []
        self.inside = self.most = 0
        self.full = asyncio.Event()

    async def send(self, message: Message) -> Outcome:
        self.came.append((self.clock.now(), message.recipient))
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= 1
        if len(self.came) >= _RUSH:
            self.full.set()
        return Done()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """A whole engine on the machine's own clock."""
    url = request.getfixturevalue(f"{request.param}_url")
    channels = {"out": ChannelSettings("noop")}
    made = build(Settings(database=url, channels=channels, concurrency=_SLOTS, sandbox=False))
    cast(Any, made.channels)["out"] = Door(made.clock)
    await made.open()
    yield made
    await made.close()


async def accept(app: App, due: int) -> None:
    """All of them for one instant; the urgent ones last, so that only their priority brings them forward."""

    async def drafts() -> AsyncIterator[tuple[int, Draft]]:
        for number in range(_RUSH):
            is_urgent = number >= _RUSH - _URGENT
            to = f"{'urgent' if is_urgent else 'plain'}-{number}"
            yield number, Draft("out", to, "now", at=due, priority=0 if is_urgent else 5)

    async for _ in app.messages.accept_many(drafts()):
        pass


async def test_ten_thousand_that_are_due_in_one_second_go_out_at_once_and_in_time(app: App) -> None:
    """Each once, none early, all within B2's minute; no more at once than there are slots; the urgent ones
    before the others, who get their share all the same (F36)."""
    door = cast(Door, app.channels["out"])
    due = app.clock.now() + 2 * SECOND
    await accept(app, due)
    begin = max(due, app.clock.now())
    app.worker.start()

    async with asyncio.timeout(120):
        await door.full.wait()

    assert set(Counter(to for _, to in door.came).values()) == {1}
    assert min(at for at, _ in door.came) >= due
    assert max(at for at, _ in door.came) - begin < 60 * SECOND
    assert door.most <= _SLOTS
    places = [place for place, (_, to) in enumerate(door.came) if to.startswith("urgent")]
    assert max(places) < _URGENT + 5 * _SLOTS
