"""A small world for tests of what comes in: one store, sources told what to say, a node that hears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tidings.inbound import message_handler
from tidings.inbound.domain import ConversationMessage, IncomingMessage
from tidings.inbound.inbox import Inbox
from tidings.inbound.ingestion import KIND, QUEUE, InboxIngestion
from tidings.inbound.message_handler import InboundMessageHandler
from tidings.inbound.poller import Poller
from tidings.inbound.roster import Roster
from tidings.inbound.source_notices import SourceNotice, notice_event_steps
from tidings.inbound.sources.port import SourceEntry, SourcePage
from tidings.inbound.sources.settings import SourceSettings
from tidings.kernel.clock import ManualClock
from tidings.kernel.runner import RunnerOptions, RunnerStep
from tidings.kernel.worker import Worker
from tidings.model.outcome import Done, Outcome
from tidings.model.time import SECOND
from tidings.observability.events import Event
from tidings.store.port import Row, Step, Store

CREW = SourceSettings("crew", "groupme", group="9", token="t" * 16, poll_interval=timedelta(seconds=10))
ADA, BEN = "1001", "1002"


def said(number: int, at: int, text: str = "", **more: Any) -> IncomingMessage:
    """One message of Ada's in the crew's group."""
    return IncomingMessage("crew", str(number), "9", ADA, "Ada", text or f"message {number}", at)._replace(**more)


class Chat:
    """A platform told what was said; it gives pages of `size` behind a cursor, as GroupMe does."""

    def __init__(self, size: int = 20) -> None:
        self.messages: list[IncomingMessage] = []
        self.size = size
        self.before_read: Callable[[int], Any] = lambda _page: None
        self.pages = 0

    async def read(self, cursor: str | None, *, since: int) -> SourcePage:
        """The page after the cursor."""
        self.pages += 1
        waiting = self.before_read(self.pages)
        if waiting is not None:
            await waiting
        found = [one for one in self.messages if int(one.id) > int(cursor or 0)][: self.size]
        return SourcePage([SourceEntry(one, one.id) for one in found], more=len(found) == self.size)

    async def look_back(self) -> Sequence[IncomingMessage]:
        """The newest."""
        return self.messages[-self.size :]

    def is_behind(self, id_: str, cursor: str) -> bool:
        """Ids grow."""
        return id_.isdigit() and int(id_) <= int(cursor)

    async def close(self) -> None:
        """Nothing to close."""


class Hears:
    """Does what the test says, and remembers."""

    def __init__(self, script: Callable[[ConversationMessage], Outcome] = lambda _item: Done("heard")) -> None:
        self.script = script
        self.items: list[ConversationMessage] = []

    async def work(self, item: ConversationMessage) -> Outcome:
        """Remember it, then do as told."""
        self.items.append(item)
        return self.script(item)


class InboxNode:
    """One node on one store."""

    def __init__(self, store: Store, clock: ManualClock, *, production: bool = True) -> None:
        self.store, self.clock = store, clock
        self.events: list[Event] = []
        self.notices: list[SourceNotice] = []
        self.roster = Roster(store)
        self.intake = InboxIngestion(store, clock, self.roster, production=production, tell=self.tell)
        self.inbox = Inbox(store, clock, {"crew": CREW})
        self.hears = Hears()
        self.worker = Worker(
            store,
            clock,
            {QUEUE: message_handler.lane()},
            {KIND: InboundMessageHandler(store, self.hears)},
            emit=self.events.append,
            options=RunnerOptions(concurrency=10),
        )

    def tell(self, notice: SourceNotice) -> Sequence[Step]:
        """Remember the notice, and write it down."""
        self.notices.append(notice)
        return notice_event_steps(notice)

    async def open(self, *people: str) -> InboxNode:
        """Ada and Ben are on the roster, and the node works."""
        assert self.store.may_work()
        await self.store.write(message_handler.lane().join())
        await self.store.write([Step("source_join", {"name": "crew", "kind": "groupme"})])
        for sender, name, squad in ((ADA, "Ada", "42"), (BEN, "Ben", "43")):
            await self.roster.put({"sender": sender, "name": name, "squad": squad})
        await self.worker.node.join()
        return self

    def poller(self, chat: Any, settings: SourceSettings = CREW, me: str = "first") -> Poller:
        """A reader of a source."""
        return Poller(
            self.store, self.clock, chat, settings, self.intake, tell=self.tell, emit=self.events.append, me=me
        )

    async def take(self, *heard: IncomingMessage, source: SourceSettings = CREW) -> None:
        """Take in without a lease, as a call-back does."""
        await self.intake.called(source, heard)

    async def step(self, *, seconds: float = 0) -> RunnerStep:
        """Let time pass, beat, and run one step."""
        self.clock.advance(seconds)
        await self.worker.node.beat()
        return await self.worker.runner.step()

    async def drain(self) -> None:
        """Step until nothing is due."""
        while (await self.step()).claimed:
            pass

    async def all(self, **which: Any) -> list[Row]:
        """The inbox, oldest first."""
        return (await self.inbox.page(limit=1000, **which)).items[::-1]

    async def source(self) -> Row:
        """The row of the source."""
        return (await self.store.read("source_find", source="crew"))[0]

    def second(self, n: int = 0) -> int:
        """A platform's time: now, in whole seconds."""
        return self.clock.now() // SECOND * SECOND + n * SECOND
