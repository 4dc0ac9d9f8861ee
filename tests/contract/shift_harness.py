"""A rescue squad for tests that move time by hand: a group chat in, a calendar, a chat out, people to call.

All parts are the real ones, from the intake to the ledger; only the platform is a channel that remembers. The
mind is a small one of the tests' own with a grammar that leaves nothing to guess:
`nocrew|add|remove 42 20270116 1800-0600`, `maybe ...` (40 of 100), `perhaps ...` (20 of 100).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tidings.inbound.calendar.builtin import BuiltinCalendar
from tidings.inbound.calendar.day_grid import line
from tidings.inbound.calendar.port import CalendarUnavailable
from tidings.inbound.domain import (
    CalendarDay,
    Extraction,
    IncomingMessage,
    Intent,
    Interpreter,
    InterpreterContext,
    ShiftAction,
    ShiftRequest,
    WorkflowRelation,
)
from tidings.inbound.effects.handler import EffectHandler
from tidings.inbound.effects.handler import lane as calendar_lane
from tidings.inbound.escalation.cases import Cases
from tidings.inbound.escalation.failed_messages import EscalatingHandler
from tidings.inbound.escalation.notifier import AdminNotifier
from tidings.inbound.escalation.reasons import EscalationWriter
from tidings.inbound.ingestion import InboxIngestion
from tidings.inbound.message_handler import InboundMessageHandler
from tidings.inbound.message_handler import lane as inbound_lane
from tidings.inbound.pipeline import Pipeline
from tidings.inbound.roster import Roster
from tidings.inbound.sources.settings import SourceSettings
from tidings.inbound.workflow.edits import EditProcessor
from tidings.inbound.workflow.followup import FollowUpHandler
from tidings.inbound.workflow.repository import StoreWorkflowRepository
from tidings.inbound.workflow.reruns import RerunHandler
from tidings.inbound.workflow.settings import WorkflowSettings
from tidings.inbound.workflow.timers import WorkflowTimers
from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.retry import POLICIES
from tidings.kernel.runner import RunnerOptions
from tidings.kernel.worker import Worker
from tidings.model.message import Draft
from tidings.model.outcome import Done
from tidings.model.task import NewTask, OnUnknown
from tidings.outbound.channels.base import ChannelTraits
from tidings.outbound.delivery import Delivery
from tidings.outbound.message_validation import MESSAGE_COLUMNS
from tidings.outbound.messages import MessageService
from tidings.store.port import Row, Store

from .kernel_harness import ScriptedChannel

FRI, SAT, SUN = "20270115", "20270116", "20270117"  # the manual clock begins on Friday at 08:00
PEOPLE = (
    ("ann", "Ann", "34", "member"), ("abe", "Abe", "34", "member"), ("ada", "Ada", "34", "officer"),
    ("ben", "Ben", "42", "member"), ("bea", "Bea", "42", "member"), ("max", "Max", "", "admin"),
)  # fmt: skip
_ACTIONS = {"nocrew": ShiftAction.NO_CREW, "add": ShiftAction.ADD, "remove": ShiftAction.REMOVE}


class PlainMind:
    """Understands the tests' grammar, and nothing else."""

    def __init__(self, name: str = "plain") -> None:
        self.name = name

    async def intent(self, scene: InterpreterContext) -> Intent:
        """A request is what names an action."""
        words = scene.text.split()
        found = any(word in _ACTIONS for word in words)
        sure = {"maybe": 40, "perhaps": 20}.get(words[0] if words else "", 90)
        days = re.findall(r"\b20\d{6}\b", scene.text)
        return Intent(found, days, sure if found else 90, "it names an action" if found else "talk", self.name)

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """An answer has no action of its own, but a piece that a request needs."""
        text = scene.text
        if text.startswith("doubtful"):
            return WorkflowRelation(True, 0.4, "perhaps", self.name)
        if text.startswith("unclear"):
            return WorkflowRelation(None, 0.0, "who knows", self.name)
        is_answer = not (await self.intent(scene)).is_request and (
            bool(re.search(r"\d{4}", text)) or text in ("never mind", "yes", "what?") or text in scene.squads
        )
        return WorkflowRelation(is_answer, 0.9, "it answers" if is_answer else "it does not", self.name)

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """What the open requests and this text come to."""
        own = [_asked(part) for part in scene.text.split(" and ")]
        asked = [one for one in own if one.action] or [
            open_._replace(**{name: new for name, new in own[0]._asdict().items() if new is not None})
            for open_ in scene.open_requests
        ]
        if scene.text == "what?":
            asked = []
        warnings = ["I am only a test"] if "warn" in scene.text else []
        if "nothing" in scene.text:
            asked = []
        return Extraction(asked, warnings, (), "by the grammar", self.name)


def _asked(text: str) -> ShiftRequest:
    words = text.split()
    action = next((_ACTIONS[word] for word in words if word in _ACTIONS), None)
    date = re.search(r"\b\d{8}\b", text)
    times = re.search(r"\b(\d{4})(?:-(\d{4}))?\b", text)
    squad = next((word for word in words if re.fullmatch(r"\d\d", word)), None)
    return ShiftRequest(
        action, squad, date[0] if date else None, times[1] if times else None, times[2] if times else None
    )


class ChatVoice:
    """Replies through our own engine."""

    table = "messages"
    columns: tuple[str, ...] = MESSAGE_COLUMNS

    def __init__(self, messages: MessageService) -> None:
        self._messages = messages

    async def prepare(
        self, channel: str, to: str, text: str, *, tenant: str, ordering_key: str, now: int, in_chat: bool = False
    ) -> tuple[NewTask, tuple[Any, ...]]:
        """One message, ready to be written."""
        return await self._messages.prepare(Draft(channel, to, text, tenant=tenant, ordering_key=ordering_key), now)


class Moody(BuiltinCalendar):
    """The real calendar, which can be told not to answer or to refuse."""

    is_away = False
    refuses: frozenset[str] = frozenset()  # squads

    async def day(self, date: str) -> CalendarDay:
        """Read, unless it is away."""
        if self.is_away:
            raise CalendarUnavailable("the calendar does not answer")
        return await super().day(date)

    async def apply(self, command: Any, key: str) -> Any:
        """Write, unless it does not like the squad."""
        from tidings.inbound.domain import CalendarAnswer

        if command.squad in self.refuses:
            return CalendarAnswer(False, "no room")
        return await super().apply(command, key)


class Squad:
    """One node with everything that inbound needs."""

    def __init__(
        self,
        store: Store,
        clock: ManualClock,
        *,
        mind: Interpreter | None = None,
        rules: Interpreter | None = None,
        how: str = "plain",
        slots: int = 10,
        **settings: Any,
    ) -> None:
        self.store, self.clock = store, clock
        self.rules = rules or PlainMind()
        self.mind = mind or self.rules
        self.how, self.slots = how, slots
        self.settings = WorkflowSettings(
            enabled=True,
            timezone="UTC",
            squads=("34", "35", "42", "43", "54"),
            admins=("pager:boss",),
            replies={"crew": "chat"},
            **settings,
        )
        traits = ChannelTraits(OnUnknown.RESEND, "as the test says", timedelta(seconds=10))
        self.channels = {name: ScriptedChannel(traits, lambda _m: Done()) for name in ("chat", "pager")}
        self.source = SourceSettings("crew", "groupme", group="g1")
        self.calendar = Moody(store, self.settings.calendar)
        self.said_so_far = 0
        self.build()

    def build(self) -> None:
        """A node; another one takes over when it dies."""
        store, clock = self.store, self.clock
        voice = ChatVoice(MessageService(store, clock, self.channels))
        caller = EscalationWriter(clock.new_id, within=self.settings.case_reminder_after)
        book = StoreWorkflowRepository(store, clock, self.settings, voice, caller)
        self.pipeline = Pipeline(
            book, clock, replace(self.settings, runner=self.how),
            rules=self.rules, interpreter=self.mind, read_day=self.calendar.day,
        )  # fmt: skip
        changes = EditProcessor(store, clock, self.settings, book, self.pipeline)
        self.keeper = WorkflowTimers(store, clock, self.settings, caller)
        self.notifier = AdminNotifier(store, clock, voice, self.settings.admins)
        self.cases = Cases(store, clock, self.settings, voice)
        self.roster = Roster(store)
        self.intake = InboxIngestion(store, clock, self.roster, production=False)
        self.lanes = {
            "inbound": inbound_lane(),
            "calendar": calendar_lane(POLICIES["quick"], calls_within=timedelta(seconds=10)),
            **{name: Lane(name) for name in self.channels},
        }
        handler = InboundMessageHandler(store, self.pipeline, changes)
        self.worker = Worker(
            store,
            clock,
            self.lanes,
            {
                "message": Delivery(store, self.channels, now=clock.now),
                "inbound_message": EscalatingHandler(handler, caller, clock),
                "rerun": EscalatingHandler(RerunHandler(store, self.pipeline), caller, clock),
                "effect": EffectHandler(store, clock, {self.calendar.name: self.calendar}),
                "followup": FollowUpHandler(store, clock, self.settings, voice, caller),
            },
            emit=lambda _event: None,
            options=RunnerOptions(concurrency=self.slots),
        )

    async def open(self, people: Sequence[tuple[str, str, str, str]] = PEOPLE) -> Squad:
        """Let the node join; everybody is on the roster."""
        assert self.store.may_work()
        for lane in self.lanes.values():
            await self.store.write(lane.join())
        await self.worker.node.join()
        for sender, name, squad, role in people:
            await self.roster.put({"sender": sender, "name": name, "squad": squad or "none", "role": role})
        return self

    async def hears(self, who: str, text: str, *, id_: str | None = None, **more: Any) -> None:
        """Somebody says something in the group."""
        self.said_so_far += 1
        said = IncomingMessage("crew", id_ or f"m{self.said_so_far}", "g1", who, who, text, self.clock.now(), **more)
        await self.intake.called(self.source, [said])

    async def settle(self, *, seconds: float = 0, rounds: int = 40) -> None:
        """Work until there is nothing to do at this time."""
        self.clock.advance(seconds)
        await self.worker.node.beat()
        for _ in range(rounds):
            await self.keeper.step()
            await self.notifier.step()
            if not any(await self.worker.runner.step()):
                return

    async def talk(self, *lines: tuple[str, str]) -> list[str]:
        """Lines of a conversation, each worked through to its end; gives what the bot said to them."""
        before = len(self.chat)
        for who, text in lines:
            await self.hears(who, text)
            await self.settle(seconds=1)
        return self.chat[before:]

    @property
    def chat(self) -> list[str]:
        """What the bot said to the group."""
        return [message.text for message in self.channels["chat"].sent]

    @property
    def pages(self) -> list[str]:
        """What the admins were told."""
        return [message.text for message in self.channels["pager"].sent]

    async def handled_messages(self) -> list[Row]:
        """What was decided about each message."""
        return await self.store.read(
            "handled_message_page", tenant="default", conversation="crew/g1", after=0, limit=500
        )

    async def decisions(self) -> list[str]:
        """The same in a word each."""
        return [hearing["decision"] for hearing in await self.handled_messages()]

    async def flows(self) -> list[Row]:
        """All workflows, oldest first."""
        rows = await self.store.read("workflow_newest", tenant="default", conversation="crew/g1", limit=500)
        return rows[::-1]

    async def states(self) -> list[str]:
        """Their states."""
        return [flow["state"] for flow in await self.flows()]

    async def day(self, date: str, squad: str) -> str:
        """The half hours of a squad's day."""
        return line(await BuiltinCalendar(self.store, self.calendar.name).day(date), squad)
