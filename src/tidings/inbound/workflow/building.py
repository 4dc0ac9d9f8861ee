"""Workflows put together: handlers and actors for whoever works, cases and conversations for the faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...kernel.actor import Actor
from ...kernel.clock import Clock
from ...kernel.handler import Handler
from ...model.outcome import Outcome
from ...store.port import Step, Store
from ..calendar.base import ShiftCalendar
from ..effects.ledger import FOLLOWUP_KIND
from ..hearing import Heard, Hearer, Hearing, NoWorkflow, Reconsidering
from ..intake import KIND as HEARD
from ..models.ladder import Ladder
from ..notices import CHANGED, Notice, Tell, by_event
from ..people.alarms import Alarmed
from ..people.calling import Caller
from ..people.cases import Cases
from ..people.notifier import Notifier
from ..people.telling import Call
from ..pipeline import Pipeline
from ..voice import Voice
from ..words import Mind
from .afterthoughts import Afterthoughts
from .book import Spoken, StoreBook
from .conversations import Conversations
from .flow import Flow
from .followup import FollowUp
from .langgraph import runner
from .rehearing import Rehearing
from .replay import Compared, MemoryBook, ReadDay, Then, replay
from .settings import WorkflowSettings
from .timers import KIND as REHEARING
from .timers import TimeKeeper


class Minds(NamedTuple):
    """Who understands: the rules, whoever is asked after them, and the answers of then for a replay."""

    rules: Mind
    mind: Mind
    recorded: Mind


class Late:
    """A pipeline that is made when it is needed: a grammar and a graph take seconds to load."""

    def __init__(self, minds: Callable[[], Minds], make: Callable[[Minds], Pipeline]) -> None:
        self._minds = minds
        self._make = make
        self._mind: Mind | None = None
        self._pipeline: Pipeline | None = None

    def pipeline(self) -> Pipeline:
        """The one pipeline."""
        if self._pipeline is None:
            minds = self._minds()
            self._mind, self._pipeline = minds.mind, self._make(minds)
        return self._pipeline

    async def hear(self, item: Heard) -> Outcome:
        """One attempt at a message of the inbox."""
        return await self.pipeline().hear(item)

    async def work(self, spoken: Spoken, *, instead_of: Flow | None = None) -> Outcome:
        """One attempt at a message, new, kept or edited."""
        return await self.pipeline().work(spoken, instead_of=instead_of)

    async def says_the_same(self, before: Spoken, after: Spoken) -> bool:
        """Whether a message asks for the same after it was edited."""
        return await self.pipeline().says_the_same(before, after)

    async def close(self) -> None:
        """Let go of the model's connections."""
        if isinstance(self._mind, Ladder):
            await self._mind.close()


@dataclass(frozen=True, slots=True)
class Workflows:
    """The parts, each with its own rules."""

    store: Store
    settings: WorkflowSettings
    cases: Cases
    conversations: Conversations
    handlers: Mapping[str, Handler]
    actors: Sequence[Actor]
    minds: Callable[[], Minds]
    late: Late | None  # None where workflows are off

    async def close(self) -> None:
        """Let go of the model's connections."""
        if self.late is not None:
            await self.late.close()

    def ready(self) -> None:
        """For whoever will work: raises Misconfigured for what would only be found out with a message."""
        if self.late is not None:
            self.late.pipeline()

    async def replay(
        self, conversation: str, *, by_rules: bool = False, tenant: str = "default"
    ) -> list[Compared]:
        """What would become of a past conversation today, by the recorded answers or by the rules alone."""
        minds = self.minds()
        mind = minds.rules if by_rules else minds.recorded

        def make(book: MemoryBook, clock: Then, read_day: ReadDay) -> Pipeline:
            own = runner("plain", mind, read_day)
            return Pipeline(book, clock, self.settings, own, rules=minds.rules, mind=mind, read_day=read_day)

        return await replay(self.store, conversation, make, self.settings, tenant=tenant)


def build(
    settings: WorkflowSettings,
    store: Store,
    clock: Clock,
    calendar: ShiftCalendar,
    voice: Voice,
    minds: Callable[[], Minds],
) -> Workflows:
    """Put the parts together. Where workflows are off, messages are kept and done, and nobody is called."""
    caller = _caller(settings, clock)
    cases, conversations = Cases(store, clock, settings, voice), Conversations(store)
    hearing: Hearing = NoWorkflow()
    changes: Reconsidering | None = None
    late: Late | None = None
    handlers: dict[str, Handler] = {
        FOLLOWUP_KIND: FollowUp(store, clock, settings, voice, caller),
    }
    actors: list[Actor] = []
    if settings.enabled:
        book = StoreBook(store, clock, settings, voice, caller)

        def make(minds: Minds) -> Pipeline:
            rules, mind, _ = minds
            run = runner(settings.runner, mind, calendar.day)
            return Pipeline(book, clock, settings, run, rules=rules, mind=mind, read_day=calendar.day)

        hearing = late = Late(minds, make)
        changes = Afterthoughts(store, clock, settings, book, late)
        handlers[REHEARING] = Alarmed(Rehearing(store, late), caller, clock)
        actors = [
            TimeKeeper(store, clock, settings, caller),
            Notifier(store, clock, voice, settings.admins),
        ]
    heard: Handler = Hearer(store, hearing, changes)
    handlers[HEARD] = Alarmed(heard, caller, clock) if settings.enabled else heard
    return Workflows(store, settings, cases, conversations, handlers, actors, minds, late)


def tell(settings: WorkflowSettings, clock: Clock) -> Tell:
    """How sources tell of their troubles: as events, and to the admins where there are any."""
    caller = _caller(settings, clock)

    def told(notice: Notice) -> Sequence[Step]:
        if notice.type == CHANGED:
            return by_event(notice)  # its afterthought tells what was done and what was not
        reason = notice.type.replace(".", "_")
        key = f"{reason}:{notice.about or notice.source}"
        call = Call(reason, f"source {notice.source}: {notice.problem}", key)
        return [*by_event(notice), *caller.steps(call, notice.tenant, notice.source, None, clock.now())]

    return told if settings.enabled else by_event


def _caller(settings: WorkflowSettings, clock: Clock) -> Caller:
    return Caller(clock.new_id, within=settings.case_within)
