"""The effect ledger: each command done once over any crash, and nothing said to be done that is not (D11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidings.inbound.calendar.builtin import BuiltinCalendar
from tidings.inbound.calendar.day_grid import after, day_of, line
from tidings.inbound.calendar.http import HttpCalendar
from tidings.inbound.calendar.port import CalendarOutcomeUnknown, CalendarUnavailable, ShiftCalendar
from tidings.inbound.calendar.settings import CalendarSettings
from tidings.inbound.domain import CalendarAnswer, CalendarCommand, CalendarDay, ShiftAction
from tidings.inbound.effects.handler import EffectHandler, lane
from tidings.inbound.effects.ledger import KIND, QUEUE, TRIES, EffectPlan, EffectState, effect_of, plan_effects
from tidings.inbound.effects.reconciler import EffectReconciler
from tidings.inbound.effects.verification import ReadBack, compare_read_back, superseded_state, verified_state
from tidings.kernel import task_actions as people
from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.retry import POLICIES
from tidings.kernel.runner import RunnerOptions
from tidings.kernel.worker import Worker
from tidings.model.outcome import Defer, Done
from tidings.model.task import NodeId, Task, TaskId, TaskState, Transition
from tidings.store.port import ClaimRequest, Row, Step, Store
from tidings.store.sqlite import SqliteStore

from .channels.conftest import Sandbox, serving

DATE = "20270115"
ADD = CalendarCommand(ShiftAction.ADD, "34", DATE, "1800", "0600")
NO_CREW = ADD._replace(action=ShiftAction.NO_CREW)
MORNING = CalendarCommand(ShiftAction.ADD, "34", DATE, "0600", "1200")


class Killed(BaseException):
    """The process ends here: nobody catches this."""


class Station:
    """A calendar, a ledger and one node; another one takes over when it dies."""

    def __init__(self, store: Store, clock: ManualClock, calendar: ShiftCalendar) -> None:
        self.store, self.clock, self.calendar = store, clock, calendar
        self.told = 0
        self.lane = lane(POLICIES["quick"], calls_within=timedelta(seconds=10))

    async def open(self) -> Station:
        assert self.store.may_work()
        for own in (self.lane, Lane("inbound")):
            await self.store.write(own.join())
        self.worker = self.node()
        await self.worker.node.join()
        return self

    def node(self) -> Worker:
        handlers = {KIND: EffectHandler(self.store, self.clock, {self.calendar.name: self.calendar})}
        return Worker(
            self.store,
            self.clock,
            {QUEUE: self.lane},
            handlers,
            emit=lambda _: None,
            options=RunnerOptions(concurrency=5),
        )

    async def plan(self, *commands: CalendarCommand, id_: str = "p1", conversation: str | None = "chat") -> list[int]:
        plan = EffectPlan(id_, self.calendar.name, "Ada", conversation)
        tasks, rows = plan_effects(plan, commands, now=self.clock.now())
        return list((await self.store.enqueue(tasks, rows)).ids)

    async def step(self, seconds: float = 0) -> int:
        self.clock.advance(seconds)
        await self.worker.node.beat()
        return (await self.worker.runner.step()).settled

    async def drain(self, most: int = 20) -> None:
        """Step until nothing waits, however long the waits are."""
        for _ in range(most):
            await self.step()
            due = await self.store.next_due([QUEUE])
            if due.at is None:
                return
            self.clock.advance_to(due.at + 1)

    async def dies(self, break_: Callable[[], None]) -> None:
        """Run the next task on a node that is killed in the middle; then another one takes over."""
        name, params = "node_join", {"name": "doomed", "info": "{}"}
        doomed = NodeId((await self.store.write([Step(name, params)]))[0][0]["id"])
        task, handler, content = await self.claimed(doomed)
        break_()
        with pytest.raises(Killed):
            await handler.run(task, content)
        await self.bury()

    async def claimed(self, node: NodeId) -> tuple[Task, EffectHandler, Any]:
        (task,) = (await self.store.claim(node, ClaimRequest({QUEUE: 1}, 1))).tasks
        await self.store.start(node, [task])
        handler = EffectHandler(self.store, self.clock, {self.calendar.name: self.calendar})
        return task, handler, (await handler.load([task]))[task.id]

    async def bury(self) -> None:
        """The others see that a node is silent, and take what it held."""
        for _ in range(3):
            self.clock.advance(60)
            await self.worker.node.beat()
            await self.worker.reaper.step()

    async def effect(self, task: int) -> Row:
        (loaded,) = await self.store.load("effect_load", [TaskId(task)])
        return (await self.store.read("effect_of_key", key=effect_of(loaded).key))[0]

    async def state(self, task: int) -> str:
        return str((await self.effect(task))["state"])

    async def followups(self) -> int:
        """How many tasks told the conversation so far, one after the other."""
        while tasks := (await self.store.claim(self.worker.node.id, ClaimRequest({"inbound": 1}, 1))).tasks:
            (task,) = tasks
            assert (task.kind, task.ordering_key) == ("followup", "chat")
            move = Transition(task.id, task.claim_no, TaskState.DONE, 1)
            await self.store.settle(self.worker.node.id, [move], keys=[("inbound", "chat")])
            self.told += 1
        return self.told


class Faulty:
    """A calendar around another one, which does as the test says."""

    def __init__(self, real: ShiftCalendar) -> None:
        self.real = real
        self.name, self.grid, self.weeks = real.name, real.grid, real.weeks
        self.sent: list[CalendarCommand] = []
        self.before: Callable[[], None] = lambda: None  # called before a command reaches the calendar
        self.behind: Callable[[], None] = lambda: None  # called when it has been done
        self.reading: Callable[[], None] = lambda: None
        self.answer: CalendarAnswer | None = None  # said instead of doing anything

    async def day(self, date: str) -> CalendarDay:
        self.reading()
        return await self.real.day(date)

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        return await self.real.days(dates)

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        return await self.real.preview(command)

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        self.sent.append(command)
        self.before()
        if self.answer is not None:
            return self.answer
        applied = await self.real.apply(command, key)
        self.behind()
        return applied

    async def close(self) -> None:
        await self.real.close()


def throw(error: BaseException) -> Callable[[], None]:
    def thrown() -> None:
        raise error

    return thrown


def once(error: BaseException) -> Callable[[], None]:
    """Fails the first time only."""
    left = [error]

    def thrown() -> None:
        if left:
            raise left.pop()

    return thrown


@pytest.fixture
async def station(store: Store, clock: ManualClock) -> Station:
    """On the built-in calendar."""
    return await Station(store, clock, Faulty(BuiltinCalendar(store))).open()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with serving() as ready:
        yield ready


def crew(day: CalendarDay, squad: str = "34") -> str:
    """A squad's day as runs, for reading in a test."""
    return line(day, squad)


async def test_a_command_is_executed_once_and_verified_by_reading_back(station: Station) -> None:
    """Planned with its task, claimed with both images, confirmed, told of in one transaction (D11)."""
    (task,) = await station.plan(ADD)
    assert (await station.state(task), await station.followups()) == ("planned", 0)

    await station.step()

    row = await station.effect(task)
    assert (row["state"], row["attempts"]) == ("confirmed", 1)
    assert (row["pre"], row["expected"]) == ("." * 24, "c" * 24)
    assert crew(await station.calendar.day(DATE)) == "." * 24 + "c" * 24
    assert await station.followups() == 1
    assert await station.step(3600) == 0, "nothing is left to do"


async def test_a_plan_has_a_result_for_each_command(station: Station) -> None:
    """Partial success is seen as such (D11)."""
    tasks = await station.plan(ADD, ADD._replace(start="1815"), MORNING)
    assert [bool((await station.effect(task))["reported"]) for task in tasks] == [False] * 3
    await station.drain()
    found = [await station.effect(task) for task in tasks]
    assert [(row["begins"], row["state"], bool(row["reported"])) for row in found] == [
        ("1800", EffectState.CONFIRMED, True),
        ("1815", EffectState.REFUSED, True),
        ("0600", EffectState.CONFIRMED, True),
    ]
    assert found[1]["evidence"].endswith(": the start 1815 is not on the calendar's grid of 30 minutes\n")
    assert await station.followups() == 3


async def test_duplicate_commands_of_a_plan_are_one(station: Station) -> None:
    """One key, one row, one task (D11)."""
    assert len(await station.plan(ADD, ADD, MORNING)) == 2


async def test_a_command_that_is_already_done_is_confirmed_without_a_call(station: Station) -> None:
    """The day is read first; nothing is sent (D11)."""
    await station.plan(ADD)
    await station.step()
    (again,) = await station.plan(ADD, id_="p2")
    await station.step()
    assert await station.state(again) == "confirmed"
    assert isinstance(station.calendar, Faulty) and station.calendar.sent == [ADD]


# -- the crash table of the ledger


async def test_killed_after_the_claim_before_the_call_it_is_sent(station: Station) -> None:
    """Claimed, the day as before: sent, once (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    (task,) = await station.plan(ADD)
    await station.dies(lambda: setattr(calendar, "before", throw(Killed())))
    assert await station.state(task) == "claimed"
    calendar.before = lambda: None

    await station.drain()

    assert await station.state(task) == "confirmed"
    assert len(calendar.sent) == 2, "the first never arrived"
    assert await station.followups() == 1


async def test_killed_after_the_call_before_its_result_it_is_not_sent_again(station: Station) -> None:
    """Claimed, the day as expected: confirmed by reading (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    (task,) = await station.plan(ADD)
    await station.dies(lambda: setattr(calendar, "behind", throw(Killed())))
    assert await station.state(task) == "claimed"
    calendar.behind = lambda: None

    await station.drain()

    row = await station.effect(task)
    assert (row["state"], row["attempts"]) == ("confirmed", 1)
    assert calendar.sent == [ADD]
    assert "not sent again" in row["evidence"]


async def test_killed_after_the_result_it_is_neither_sent_nor_reported_again(station: Station) -> None:
    """The result is written, the task is not settled: the next run does nothing (D11)."""
    (task,) = await station.plan(ADD)
    node = (await station.store.write([Step("node_join", {"name": "doomed", "info": "{}"})]))[0][0]["id"]
    claimed, handler, content = await station.claimed(NodeId(node))
    assert isinstance(await handler.run(claimed, content), Done)
    await station.bury()

    await station.drain()

    assert await station.state(task) == "confirmed"
    assert await station.followups() == 1
    assert isinstance(station.calendar, Faulty) and station.calendar.sent == [ADD]


async def test_a_node_that_lost_its_claim_cannot_write_its_result(station: Station) -> None:
    """It may have sent the call; whoever has the claim now settles it by reading."""
    (task,) = await station.plan(ADD)
    node = (await station.store.write([Step("node_join", {"name": "slow", "info": "{}"})]))[0][0]["id"]
    claimed, handler, content = await station.claimed(NodeId(node))
    await station.bury()
    assert isinstance(await handler.run(claimed, content), Defer), "the fence"
    assert (await station.effect(task))["attempts"] == 0
    assert isinstance(station.calendar, Faulty) and station.calendar.sent == []
    await station.drain()
    assert await station.state(task) == "confirmed"


async def test_a_reported_success_without_a_change_is_a_conflict(station: Station) -> None:
    """A success answer is no proof; no confirmation, a person is told (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.answer = CalendarAnswer(True, "change 7")
    (task,) = await station.plan(ADD)
    await station.drain()
    row = await station.effect(task)
    assert row["state"] == "conflict"
    assert "accepted (change 7); read back: ......" in row["evidence"]
    assert await station.followups() == 1


async def test_a_lost_answer_is_settled_by_reading_back(station: Station) -> None:
    """Unknown, then confirmed; one call (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.behind = once(CalendarOutcomeUnknown("no answer"))
    (task,) = await station.plan(ADD)
    await station.step()
    assert await station.state(task) == "unknown"
    assert await station.followups() == 0, "nothing is told before it is known"

    await station.drain()

    assert await station.state(task) == "confirmed"
    assert calendar.sent == [ADD]


async def test_an_unknown_outcome_verified_as_not_done_is_sent_again(station: Station) -> None:
    """Unknown, not_applied, claimed, confirmed: each is written down (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.before = once(CalendarOutcomeUnknown("no answer"))
    (task,) = await station.plan(ADD)
    await station.drain()
    row = await station.effect(task)
    states = [text.split()[1].rstrip(":") for text in row["evidence"].splitlines()]
    assert states == ["claimed", "unknown", "not_applied", "claimed", "confirmed"]
    assert row["attempts"] == 2


async def test_an_unknown_outcome_with_another_edit_is_a_conflict(station: Station) -> None:
    """Neither what was nor what should be; other half hours do not matter (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.before = once(CalendarOutcomeUnknown("no answer"))
    (task,) = await station.plan(ADD)
    await station.step()
    part = CalendarCommand(ShiftAction.NO_CREW, "34", DATE, "2000", "2200")
    await calendar.real.apply(part, "by hand")
    await station.drain()
    assert await station.state(task) == "conflict"
    assert len(calendar.sent) == 1


async def test_edits_of_other_half_hours_do_not_conflict(station: Station) -> None:
    """Only the touched half hours are compared (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.behind = once(CalendarOutcomeUnknown("no answer"))
    (task,) = await station.plan(ADD)
    await station.step()
    await calendar.real.apply(MORNING, "by hand")
    await calendar.real.apply(ADD._replace(squad="35"), "by hand too")
    await station.drain()
    assert await station.state(task) == "confirmed"


# -- a calendar that is away


async def test_an_unavailable_calendar_changes_no_state_until_the_last_attempt(station: Station) -> None:
    """Planned all the while; then refused with its reason, because nothing was sent (D11, D12)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.reading = throw(CalendarUnavailable("the calendar did not answer"))
    (task,) = await station.plan(ADD)
    for _ in range(TRIES - 1):
        await station.step()
        assert await station.state(task) == "planned"
        station.clock.advance(3600)
    await station.drain()
    row = await station.effect(task)
    assert row["state"] == "refused"
    assert "given up after 5 tries: the calendar did not answer" in row["evidence"]
    assert await station.followups() == 1
    assert calendar.sent == []


async def test_a_calendar_unavailable_after_an_unknown_outcome_leaves_it_unknown(station: Station) -> None:
    """Never refused, never confirmed: nobody could read (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)

    def goes_away() -> None:
        calendar.reading = throw(CalendarUnavailable("the calendar did not answer"))

    calendar.behind = goes_away
    (task,) = await station.plan(ADD)
    await station.drain()
    assert await station.state(task) == "unknown"
    assert await station.followups() == 1
    assert len(calendar.sent) == 1


async def test_a_command_that_could_not_leave_is_planned_again(station: Station) -> None:
    """Certainly not sent: no doubt, the next try starts afresh."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    calendar.before = once(CalendarUnavailable("no connection"))
    (task,) = await station.plan(ADD)
    await station.step()
    assert await station.state(task) == "planned"
    await station.drain()
    assert await station.state(task) == "confirmed"


async def test_a_cancelled_command_is_reported_as_refused(station: Station) -> None:
    """Whatever ends a task, its conversation hears of it."""
    (task,) = await station.plan(ADD)
    await people.cancel(station.store, task, reason="not wanted")
    aftermath = EffectReconciler(station.store, station.clock)
    await asyncio.gather(aftermath.step(), aftermath.step())
    assert await station.state(task) == "refused"
    assert await station.followups() == 1


# -- order


async def test_two_commands_of_one_day_run_one_after_the_other(station: Station) -> None:
    """One writer per day: the second reads what the first has written (D11)."""
    first, second = await station.plan(ADD, NO_CREW)
    assert await station.step() == 1
    assert (await station.state(first), await station.state(second)) == ("confirmed", "planned")
    await station.drain()
    assert crew(await station.calendar.day(DATE)) == "." * 24 + "n" * 24


async def test_a_late_command_is_superseded_by_later_ones(station: Station) -> None:
    """An old command must not overwrite a newer one that covers it (D11)."""
    calendar = station.calendar
    assert isinstance(calendar, Faulty)
    (old,) = await station.plan(ADD)
    node = (await station.store.write([Step("node_join", {"name": "slow", "info": "{}"})]))[0][0]["id"]
    claimed, handler, content = await station.claimed(NodeId(node))
    calendar.before = throw(Killed())
    with pytest.raises(Killed):
        await handler.run(claimed, content)
    calendar.before = lambda: None
    # Its task fails and gives its turn away; a newer command goes through; then a person retries the old one.
    await _fail(station, claimed, node)
    (new,) = await station.plan(NO_CREW, id_="p2")
    await station.drain()
    assert await station.state(new) == "confirmed"
    await people.retry(station.store, old, due_at=station.clock.now(), expires_at=None, reason="by hand")
    await station.drain()
    assert await station.state(old) == "superseded"
    assert set(crew(await calendar.day(DATE))) <= {".", "n"}


async def _fail(station: Station, task: Task, node: int) -> None:
    move = Transition(task.id, task.claim_no, TaskState.FAILED, task.attempts, unknown=True)
    assert task.ordering_key is not None
    await station.store.settle(NodeId(node), [move], keys=[(QUEUE, task.ordering_key)])


def test_a_late_command_covered_in_part_is_a_conflict() -> None:
    """Half hours in common but not all: neither sent nor forgotten."""
    assert superseded_state((0, 10), []) is None
    assert superseded_state((0, 10), [(10, 12)]) is None
    assert superseded_state((0, 10), [(0, 4), (4, 12)]) is EffectState.SUPERSEDED
    assert superseded_state((0, 10), [(0, 4)]) is EffectState.CONFLICT


def test_an_answer_alone_confirms_nothing() -> None:
    """All six cases of an answer and a reading."""
    assert compare_read_back("cc", pre="..", expected="cc") is ReadBack.DONE
    assert compare_read_back("..", pre="..", expected="cc") is ReadBack.UNDONE
    assert compare_read_back("c.", pre="..", expected="cc") is ReadBack.OTHER
    assert verified_state(ReadBack.DONE, accepted=True) is EffectState.CONFIRMED
    assert verified_state(ReadBack.DONE, accepted=False) is EffectState.CONFIRMED
    assert verified_state(ReadBack.UNDONE, accepted=False) is EffectState.REFUSED
    assert verified_state(ReadBack.UNDONE, accepted=True) is EffectState.CONFLICT
    assert verified_state(ReadBack.OTHER, accepted=True) is EffectState.CONFLICT
    assert verified_state(ReadBack.OTHER, accepted=False) is EffectState.CONFLICT


async def test_two_writers_on_one_day_lose_nothing(store: Store) -> None:
    """Twenty changes of ten squads at the same time, each with its own key; half are repeats."""
    calendar = BuiltinCalendar(store)
    commands = [ADD._replace(squad=str(n)) for n in range(10)] + [MORNING._replace(squad=str(n)) for n in range(10)]
    asked = [calendar.apply(command, f"k{n}") for n, command in enumerate(commands)]
    again = [calendar.apply(command, f"k{n}") for n, command in enumerate(commands)]
    answers = await asyncio.gather(*asked, *again)
    day = await calendar.day(DATE)
    assert {crew(day, str(n)) for n in range(10)} == {"c" * 12 + "." * 12 + "c" * 24}
    assert answers[:20] == answers[20:], "the same key answers the same"
    assert len(set(answers)) == 20


# -- the calendar behind an address, and its faults


def aimed(sandbox: Sandbox, **more: Any) -> HttpCalendar:
    """At the simulated calendar."""
    settings = CalendarSettings(
        "http", url=f"{sandbox.url}/shift-calendar", grid=60, allow_private=True, allow_http=True, **more
    )
    return HttpCalendar(settings, now=lambda: 0)


@pytest.fixture
async def remote(tmp_path: Path, clock: ManualClock, sandbox: Sandbox) -> AsyncIterator[Station]:
    """A station whose calendar is behind an address; on SQLite, for the store is tried above."""
    store, calendar = SqliteStore(tmp_path / "tidings.db", now=clock.now, inline=True), aimed(sandbox)
    await store.open()
    yield await Station(store, clock, calendar).open()
    await calendar.close()
    await store.close()


async def test_a_remote_calendar_is_commanded_and_read_back(remote: Station, sandbox: Sandbox) -> None:
    """A GET that writes, with preview=false; read, preview, write, read (D11)."""
    (task,) = await remote.plan(ADD)
    await remote.drain()
    assert await remote.state(task) == "confirmed"
    assert [entry.to for entry in sandbox.ledger] == ["read", "preview", "write", "read"]
    assert crew(await remote.calendar.day(DATE)) == "." * 24 + "c" * 24


async def test_a_command_refused_by_the_preview_is_not_sent(remote: Station, sandbox: Sandbox) -> None:
    """The calendar says success and does nothing; its preview gives it away: no false confirmation."""
    first, second, third = await remote.plan(ADD, NO_CREW, ADD._replace(end="2200"))
    await remote.drain()
    assert [await remote.state(task) for task in (first, second, third)] == ["confirmed", "confirmed", "refused"]
    assert sum(entry.to == "write" for entry in sandbox.ledger) == 2
    assert set(crew(await remote.calendar.day(DATE))) == {".", "n"}


async def test_a_time_off_the_grid_is_never_sent(remote: Station, sandbox: Sandbox) -> None:
    """There it would book all 24 hours and say success."""
    (task,) = await remote.plan(CalendarCommand(ShiftAction.ADD, "34", DATE, "0715", "0745"))
    await remote.drain()
    assert await remote.state(task) == "refused"
    assert "0715 is not on the calendar's grid of 60 minutes" in (await remote.effect(task))["evidence"]
    assert sandbox.ledger == []


async def test_the_simulated_calendar_has_the_faults_of_the_real_one(sandbox: Sandbox) -> None:
    """Both are there, so that they are guarded against and not wished away."""
    import httpx

    async with httpx.AsyncClient(base_url=sandbox.url) as client:

        async def ask(**params: str) -> Any:
            return (await client.get("/shift-calendar", params={"date": DATE, **params})).json()

        window = {"shift_start": "0715", "shift_end": "0745", "squad": "34"}
        assert (await ask(action="addShift", **window))["preview"] is True, "preview is the default"
        said = await ask(action="addShift", preview="false", **window)
        assert said["success"] is True
        calendar = aimed(sandbox)
        assert crew(await calendar.day(DATE)) == "c" * 48, "all 24 hours"
        whole = {"shift_start": "0600", "shift_end": "1800", "squad": "34", "preview": "false"}
        await ask(action="noCrew", **whole)
        assert (await ask(action="addShift", **whole))["success"] is True
        assert crew(await calendar.day(DATE)) == "n" * 24 + "c" * 24, "nothing was added"
        assert (await ask())["status"] == "error"
        assert (await ask(action="dance"))["success"] is False
        backups = (await ask(action="list_backups"))["backups"]
        assert len(backups) == 3
        await ask(action="rollback", change_id=backups[1]["id"])
        assert crew(await calendar.day(DATE)) == "c" * 48
        await calendar.close()


@pytest.mark.parametrize(
    ("fault", "state", "writes"),
    [
        ({"kind": "lost"}, "confirmed", 1),  # done, and the line cut: read, not sent again
        ({"kind": "cut"}, "confirmed", 2),  # not done: read, sent again
        ({"kind": "500"}, "confirmed", 2),
        ({"kind": "429", "seconds": 3}, "confirmed", 2),
        ({"kind": "error", "code": "silent"}, "conflict", 1),
        ({"kind": "error", "code": "written"}, "confirmed", 1),  # success: false with a changeId: read
        ({"kind": "error", "code": "unwritten"}, "confirmed", 2),
        ({"kind": "error", "code": "status"}, "refused", 1),
        ({"kind": "error", "code": "No_such_squad"}, "refused", 1),
    ],
)
async def test_no_fault_of_a_remote_calendar_gives_a_false_confirmation(
    remote: Station, sandbox: Sandbox, fault: dict[str, Any], state: str, writes: int
) -> None:
    """Lost answers, errors in both shapes, success without effect: what is said is what is there (D11)."""
    sandbox.break_(**fault, recipient="write", times=1)
    (task,) = await remote.plan(ADD)
    await remote.drain()
    assert await remote.state(task) == state
    assert sum(entry.to == "write" for entry in sandbox.ledger) == writes
    there = crew(await remote.calendar.day(DATE)) == "." * 24 + "c" * 24
    assert there == (state == "confirmed")
    assert await remote.followups() == 1


async def test_a_command_that_would_fill_a_gap_elsewhere_is_refused(remote: Station, sandbox: Sandbox) -> None:
    """The calendar extends a shift to the next one, and the last one to 0600: nobody asked for those hours."""
    early, late = MORNING, CalendarCommand(ShiftAction.ADD, "35", DATE, "1500", "1800")
    night = CalendarCommand(ShiftAction.ADD, "35", DATE, "2000", "0200")
    first, second, third = await remote.plan(early, late, night)
    await remote.drain()

    assert [await remote.state(task) for task in (first, second, third)] == ["confirmed", "refused", "refused"]
    assert "would also change hours that nobody asked for, of 34" in (await remote.effect(second))["evidence"]
    assert sum(entry.to == "write" for entry in sandbox.ledger) == 1
    assert crew(await remote.calendar.day(DATE)) == "c" * 12 + "." * 36


async def test_a_change_by_somebody_else_during_the_preview_is_not_taken_for_a_side_effect(
    remote: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is previewed again and executed."""
    calendar = remote.calendar
    preview, theirs = calendar.preview, [MORNING._replace(squad="35")]

    async def interrupted(command: CalendarCommand) -> CalendarDay:
        if theirs:
            assert (await calendar.apply(theirs.pop(), "theirs")).accepted
        return await preview(command)

    monkeypatch.setattr(calendar, "preview", interrupted)
    (task,) = await remote.plan(MORNING)
    await remote.drain()

    assert await remote.state(task) == "confirmed"
    assert crew(await calendar.day(DATE), "35") == crew(await calendar.day(DATE)) == "c" * 12 + "." * 36


async def test_a_remote_calendar_at_a_private_address_is_not_called() -> None:
    """Unless its settings say so."""
    settings = CalendarSettings("http", url="https://calendar.example/commands", grid=60)

    async def look_up(_host: str) -> Sequence[str]:
        return ["10.0.0.7"]

    calendar = HttpCalendar(settings, now=lambda: 0, look_up=look_up)
    with pytest.raises(CalendarUnavailable, match="not public"):
        await calendar.day(DATE)
    await calendar.close()


def test_the_day_after_a_command_is_what_the_command_says() -> None:
    """The pure side of the built-in calendar."""
    day = day_of(DATE, {"34": "." * 48})
    assert (
        crew(after(after(day, ADD), NO_CREW._replace(start="2000", end="2200")))
        == "." * 24 + "cccc" + "nnnn" + "c" * 16
    )
