"""Harness for contract tests: an engine on one store with a manual clock and a scripted channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.runner import RunnerOptions, RunnerStep
from tidings.kernel.worker import Worker
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome
from tidings.model.task import OnUnknown
from tidings.observability.events import Event
from tidings.outbound.channels.base import ChannelTraits
from tidings.outbound.delivery import Delivery
from tidings.outbound.explanation import Explanation, load_explanation
from tidings.outbound.message_validation import MESSAGE_KIND
from tidings.outbound.messages import MessageService
from tidings.store.port import Row, Store

Script = Callable[[Message], Outcome]


class ScriptedChannel:
    """A channel that does what the test says, and remembers what it was given."""

    kind: ClassVar[str] = "scripted"

    def __init__(self, traits: ChannelTraits, script: Script) -> None:
        self.traits = traits
        self.script = script
        self.answers: Script = lambda _message: Done()
        self.sent: list[Message] = []

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Everything can be sent."""

    async def send(self, message: Message) -> Outcome:
        """Remember it, then do as told."""
        self.sent.append(message)
        return self.script(message)

    async def lookup(self, message: Message) -> Outcome:
        """For `ask`."""
        return self.answers(message)

    async def close(self) -> None:
        """Nothing to close."""

    @property
    def ids(self) -> list[str]:
        """The messages given to it, in order."""
        return [message.id for message in self.sent]


class KernelHarness:
    """One node, one store, one clock."""

    def __init__(
        self,
        store: Store,
        clock: ManualClock,
        script: Script = lambda _message: Done(),
        *,
        on_unknown: OnUnknown = OnUnknown.RESEND,
        per_recipient: timedelta | None = None,
        slots: int = 10,
        channels: tuple[str, ...] = ("main",),
        **lane: Any,
    ) -> None:
        self.store, self.clock = store, clock
        traits = ChannelTraits(on_unknown, "as the test says", timedelta(seconds=10), per_recipient=per_recipient)
        self.channels: Mapping[str, ScriptedChannel] = {name: ScriptedChannel(traits, script) for name in channels}
        self.channel = self.channels[channels[0]]
        self.lanes = {name: Lane(name, on_unknown=on_unknown, deadline=traits.deadline, **lane) for name in channels}
        self.messages = MessageService(store, clock, self.channels)
        self.events: list[Event] = []
        self.worker = self.node(slots)

    def node(self, slots: int = 10) -> Worker:
        """Another node of the same fleet; join it before use."""
        return Worker(
            self.store,
            self.clock,
            self.lanes,
            {MESSAGE_KIND: Delivery(self.store, self.channels, now=self.clock.now)},
            emit=self.events.append,
            options=RunnerOptions(concurrency=slots),
            contents=("prune_message",),
        )

    async def open(self) -> KernelHarness:
        """Let the node join."""
        assert self.store.may_work()
        for lane in self.lanes.values():
            await self.store.write(lane.join())
        await self.worker.node.join()
        return self

    async def send(self, to: str = "ada", text: str = "hello", **more: Any) -> str:
        """Accept one message."""
        draft = Draft(more.pop("channel", "main"), to, text)
        return (await self.messages.accept(draft._replace(**more))).id

    async def step(self, *, seconds: float = 0) -> RunnerStep:
        """Let time pass, beat, and run one step."""
        self.clock.advance(seconds)
        await self.worker.node.beat()
        return await self.worker.runner.step()

    async def show(self, id_: str) -> Row:
        """The message as people see it."""
        return await self.messages.show(id_)

    async def why(self, id_: str) -> Explanation:
        """Its reason."""
        row = await self.messages.find(id_)
        return await load_explanation(self.store, row, await self.store.read("history_of", task=row["task"]))

    def told(self, kind: type[Event]) -> list[Event]:
        """Events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]
