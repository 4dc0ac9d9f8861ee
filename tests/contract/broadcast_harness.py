"""Harness for broadcasts: the kernel harness with templates, contacts, broadcasts and their feeder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tidings.kernel.clock import ManualClock
from tidings.model.outcome import Done
from tidings.model.time import micros
from tidings.outbound.broadcasts.feeder import BroadcastFeeder
from tidings.outbound.broadcasts.recipient_snapshot import BroadcastCreator
from tidings.outbound.broadcasts.service import BroadcastService
from tidings.outbound.contacts.contact_lists import ContactListService
from tidings.outbound.contacts.service import ContactService
from tidings.outbound.message_validation import MessageLimits
from tidings.outbound.templates.service import TemplateService
from tidings.store.port import Row, Store

from .kernel_harness import KernelHarness


class BroadcastHarness(KernelHarness):
    """A world with broadcasts in it."""

    def __init__(self, store: Store, clock: ManualClock, script: Any = lambda _m: Done(), **more: Any) -> None:
        super().__init__(store, clock, script, slots=more.pop("slots", 50), **more)
        self.templates = TemplateService(store, clock)
        self.contacts = ContactService(store, clock, list(self.channels))
        self.audience = ContactListService(store, clock, self.contacts)
        self.broadcast_creator = self.another_freezer()
        self.broadcasts = BroadcastService(store, clock)
        self.pump = self.another_pump()

    def another_freezer(self) -> BroadcastCreator:
        return BroadcastCreator(self.store, self.clock, self.channels, self.templates, self.audience)

    def another_pump(self) -> BroadcastFeeder:
        return BroadcastFeeder(
            self.store, self.clock, self.broadcast_creator, grace=micros(MessageLimits().grace), emit=self.events.append
        )

    async def cast(self, *to: Any, **fields: Any) -> str:
        """Make a broadcast to these."""
        body = {"channel": "main", "text": "hello", "addresses": list(to) or people(5)} | fields
        return str((await self.broadcast_creator.create(body)).answer["id"])

    async def run(self, *, seconds: float = 0, rounds: int = 30) -> None:
        """Let time pass, then pump and send until nothing happens any more at this moment."""
        self.clock.advance(seconds)
        for _ in range(rounds):
            await self.worker.node.beat()
            await self.pump.step()
            self.clock.advance(0.05)
            if not (await self.worker.runner.step()).claimed:
                self.clock.advance(1)
                await self.pump.step()
                await self.pump.step()
                await self.worker.node.beat()
                if not (await self.worker.runner.step()).claimed:
                    return

    async def look(self, id_: str) -> Row:
        """How it stands; the books are compared with the rows at every look."""
        shown = await self.broadcasts.show(id_)
        assert sum(shown["counts"].values()) == shown["total"], shown["counts"]
        assert all(n >= 0 for n in shown["counts"].values()), shown["counts"]
        return shown

    async def counts(self, id_: str) -> dict[str, int]:
        """The words that count anything."""
        return {word: n for word, n in (await self.look(id_))["counts"].items() if n}

    async def roll(self, id_: str) -> list[Row]:
        """Every recipient."""
        return [row async for page in await self.broadcasts.export(id_) for row in page]

    @property
    def to(self) -> list[str]:
        """Who was sent something, in order."""
        return [message.recipient for message in self.channel.sent]

    async def outbox(self) -> list[tuple[str, str | None]]:
        """What is to be told to others."""
        return [(row["type"], row["target"]) for row in await self.store.read("outbox_page", limit=100)]


def people(n: int, first: int = 0) -> list[str]:
    """So many addresses."""
    return [f"p{number:06}" for number in range(first, first + n)]


async def stream(*rows: Any) -> AsyncIterator[tuple[int, Any]]:
    """Rows of an upload."""
    for number, row in enumerate(rows, 1):
        yield number, {"address": row} if isinstance(row, str) else row
