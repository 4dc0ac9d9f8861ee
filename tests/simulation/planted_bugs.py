"""Planted bugs: each patches the engine for as long as it is planted, and the simulation must catch it.

They stay in the tree, because a judge that nobody tries to deceive is not known to see anything.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

from tidings.kernel import decisions, reaper, settler
from tidings.kernel.channel_states import ChannelStates
from tidings.kernel.decisions import TaskDecision
from tidings.kernel.heartbeats import Node
from tidings.kernel.reaper import Reaper, ReapResult
from tidings.kernel.runner import TaskRunner
from tidings.kernel.settler import Settler
from tidings.model.errors import TemporaryError
from tidings.model.outcome import Done, Reject, Retry
from tidings.model.task import Category
from tidings.store.rate_limits import RateLimitState
from tidings.store.sqlite_steps import SqliteSteps
from tidings.store.statements import load_statements

from .clock import HostClock
from .link import Link
from .loop import HOST
from .plan import LANES, drawn
from .receiver import Sender
from .stories import Story, late_claim, late_settle, sleeping_reaper, wrong_clock
from .world import Report, simulate


class Plant(NamedTuple):
    """A bug, and the faults in which it shows."""

    name: str
    what: str
    grow: Callable[[ExitStack], None]
    faults: frozenset[str]
    first: int  # a seed near one in which it shows
    story: Callable[[], Story] | None  # where chance seldom brings it about


_MOST = 60  # worlds; most plants show in the first

PLANTS: dict[str, Plant] = {}


Grow = Callable[[ExitStack], None]


def _plant(*faults: str, first: int = 0, story: Callable[[], Story] | None = None) -> Callable[[Grow], Grow]:
    def keep(grow: Grow) -> Grow:
        what = (grow.__doc__ or "").strip()
        PLANTS[grow.__name__] = Plant(grow.__name__, what, grow, frozenset(faults), first, story)
        return grow

    return keep


@contextmanager
def planted(name: str) -> Iterator[Plant]:
    """The engine with one bug in it."""
    with ExitStack() as garden:
        PLANTS[name].grow(garden)
        yield PLANTS[name]


def _rewrite(garden: ExitStack, changes: Mapping[str, tuple[str, str]]) -> None:
    """Other words in a statement."""
    known: Any = load_statements("sqlite")
    altered = {}
    for name, (pattern, instead) in changes.items():
        sql, n = re.subn(pattern, instead, known[name].sql)
        assert n, f"{name} is written otherwise now: the plant must follow"
        altered[name] = known[name]._replace(sql=sql)
    garden.enter_context(patch.dict(known, altered))


@_plant(story=late_settle)
def no_fence(garden: ExitStack) -> None:
    """Whoever comes last settles a task, whoever holds it."""
    _rewrite(garden, {
        "settle_one": (r"and node = (\?\d+) and claim_no = (\?\d+)", r"and coalesce(\1, \2) is not null"),
        "start_one": (r"and node = (\?\d+) and claim_no = (\?\d+)", r"and coalesce(\1, \2) is not null"),
        "settle_done": (r"and node = (\?\d+)", r"and \1 is not null"),
    })  # fmt: skip


@_plant("receiver")
def constant_token(garden: ExitStack) -> None:
    """A new claim has the number of the last one."""
    _rewrite(garden, {"claim_some": (r"claim_no = claim_no \+ 1", "claim_no = 1"), "near": (r"claim_no \+ 1", "1")})


@_plant("store", "pause", "slow", "receiver")
def no_state_guard(garden: ExitStack) -> None:
    """A result is written whatever has become of the task meanwhile."""
    _rewrite(garden, {
        "settle_one": (
            r"and state = 'processing' and node = (\?\d+) and claim_no = (\?\d+)",
            r"and coalesce(\1, \2) is not null",
        ),
    })  # fmt: skip


@_plant("skew")
def app_clock_lease(garden: ExitStack) -> None:
    """A node is given up by comparing its last beat with one's own wall clock."""

    def silent(seen: Any, rows: Any, *, now: float, node_timeout: Any) -> tuple[dict[int, Any], list[Any]]:
        clock = HOST.get().clock
        assert clock is not None
        wall = clock.wall()
        return {}, [row for row in rows if wall - row["seen_at"] >= node_timeout.total_seconds() * 1e6]

    garden.enter_context(patch.object(reaper, "find_silent_nodes", silent))


@_plant("skew")
def app_clock(garden: ExitStack) -> None:
    """A node never learns the database's time."""
    garden.enter_context(patch.object(HostClock, "learn", lambda *_: None))


@_plant("receiver")
def no_lease(garden: ExitStack) -> None:
    """Everybody else counts as dead at once."""
    garden.enter_context(patch.object(reaper, "find_silent_nodes", lambda seen, rows, **_: ({}, list(rows))))


@_plant("kill", "kill at")
def no_reaper(garden: ExitStack) -> None:
    """What a dead node held is never looked for."""

    async def step(self: Reaper) -> ReapResult:
        return ReapResult()

    garden.enter_context(patch.object(Reaper, "step", step))


@_plant("kill", "kill at")
def no_flag(garden: ExitStack) -> None:
    """What was in doubt is sent again in silence."""
    judge = reaper.decide_after_crash  # type: ignore[attr-defined]

    def died(*facts: Any, **more: Any) -> TaskDecision:
        decision = judge(*facts, **more)
        return decision._replace(move=decision.move._replace(unknown=False))

    garden.enter_context(patch.object(reaper, "decide_after_crash", died))


@_plant("kill", "kill at")
def no_start_mark(garden: ExitStack) -> None:
    """A channel that holds sends without having written it down."""
    for lane in LANES.values():
        garden.callback(object.__setattr__, lane, "marks_start", lane.marks_start)
        object.__setattr__(lane, "marks_start", False)


@_plant("kill", "kill at", "pause at", first=20)
def reaped_too_soon(garden: ExitStack) -> None:
    """What a silent node had begun is taken before its deadline."""
    garden.enter_context(patch.object(reaper, "_is_recoverable", lambda row, now: True))


@_plant("receiver")
def no_doubt(garden: ExitStack) -> None:
    """A request that was never answered is tried again as if it had not left."""

    def instead(task: Any, evidence: str, lane: Any, now: int, chance: float) -> TaskDecision:
        return decisions._retry(task, Retry(Category.TEMPORARY, evidence), lane, now, chance)

    garden.enter_context(patch.object(decisions, "_unknown", instead))


@_plant("cut", "cut all")
def refused_is_rejected(garden: ExitStack) -> None:
    """A result that the database refuses to take is rejected, even if the message was sent."""
    step = Settler.step

    async def refused(self: Settler, largest: int = 1000) -> int:
        try:
            return await step(self, largest)
        except TemporaryError as error:
            raise RuntimeError(error.problem) from error

    def spoil(self: Settler, error: Exception) -> None:
        spoilt = self._results.popleft()
        self._results.append(spoilt._replace(outcome=Reject(Category.SYSTEM, str(error))))

    garden.enter_context(patch.object(Settler, "step", refused))
    garden.enter_context(patch.object(Settler, "_replace_unwritable", spoil))


@_plant("pause", "pause at")
def no_distrust(garden: ExitStack) -> None:
    """A node that has slept through its lease goes on as if nothing had been."""
    garden.enter_context(patch.object(Node, "is_trusted", property(lambda self: True)))


@_plant("kill", "kill at")
def done_before_send(garden: ExitStack) -> None:
    """It is written down as done, and then sent."""
    send = Sender.run

    async def later(self: Sender, task: Any, content: Any) -> None:
        await asyncio.sleep(0.2)
        await send(self, task, content)

    async def run(self: Sender, task: Any, content: Any) -> Done:
        asyncio.get_running_loop().create_task(later(self, task, content))
        return Done()

    garden.enter_context(patch.object(Sender, "run", run))


@_plant("hints")
def lost_wake_up(garden: ExitStack) -> None:
    """An idle node waits for a hint, however long."""

    async def sleep(self: TaskRunner, found: int) -> None:
        await self._woken.wait()

    garden.enter_context(patch.object(TaskRunner, "_sleep_until_due", sleep))


@_plant("store", first=5)
def results_forgotten(garden: ExitStack) -> None:
    """Results are taken out of hand before they are written."""
    step = Settler.step

    async def hasty(self: Settler, largest: int = 1000) -> int:
        kept = list(self._results)
        try:
            return await step(self, largest)
        except Exception:
            for _ in kept:
                self._results.popleft()
            raise

    garden.enter_context(patch.object(Settler, "step", hasty))


@_plant("store")
def lost_claim(garden: ExitStack) -> None:
    """Nobody looks for what a claim took whose answer was lost."""

    async def nothing(self: TaskRunner) -> None:
        self._may_hold_untracked = False

    garden.enter_context(patch.object(TaskRunner, "_release_untracked", nothing))


@_plant(story=late_settle)
def late_result_dropped(garden: ExitStack) -> None:
    """A result whose claim has gone is thrown away."""

    async def nothing(*_: Any) -> None:
        return None

    garden.enter_context(patch.object(settler, "record_late_result", nothing))


@_plant("store")
def accepted_twice(garden: ExitStack) -> None:
    """The key of an accept is not kept."""
    enqueue = Link.enqueue

    async def keyless(self: Link, tasks: Any, *rows: Any, **options: Any) -> Any:
        return await enqueue(self, tasks, *rows, **{**options, "once": None})

    garden.enter_context(patch.object(Link, "enqueue", keyless))


@_plant()
def turn_kept(garden: ExitStack) -> None:
    """Nobody passes the turn of an order key on."""
    garden.enter_context(patch.object(SqliteSteps, "pass_turn", lambda *_, **__: None))


@_plant("receiver", "cut all")
def last_first(garden: ExitStack) -> None:
    """The turn of an order key goes to the last in its line."""
    _rewrite(garden, {"promote": (r"order by n\.first_due, n\.id", "order by n.first_due desc, n.id desc")})


@_plant("rush")
def in_a_burst(garden: ExitStack) -> None:
    """The instants of a rate are all now."""
    garden.enter_context(patch.object(RateLimitState, "step", 0))
    garden.enter_context(patch.object(RateLimitState, "allowance", lambda self, now: 100))


@_plant("outage")
def no_probe(garden: ExitStack) -> None:
    """A breaker that has opened stays open."""

    async def none(self: ChannelStates, queues: Any) -> set[str]:
        return set()

    garden.enter_context(patch.object(ChannelStates, "ask_for_probes", none))


@_plant("poison")
def poison_again(garden: ExitStack) -> None:
    """What takes its node down is never set aside."""
    judge = reaper.decide_after_crash  # type: ignore[attr-defined]

    def died(task: Any, lane: Any, **facts: Any) -> TaskDecision:
        return judge(task._replace(crashes=0), lane, **facts)

    garden.enter_context(patch.object(reaper, "decide_after_crash", died))


@_plant(story=sleeping_reaper)
def no_second_look(garden: ExitStack) -> None:
    """A node is given up by what was read of it some time ago."""
    _rewrite(garden, {"node_dead": (r"and heartbeat = (\?\d+)", r"and \1 is not null")})


@_plant(story=late_claim)
def strays_forgotten(garden: ExitStack) -> None:
    """Nobody looks for what is held by nodes that are gone."""
    _rewrite(garden, {"node_strays": (r"n\.state = 'gone'", "n.state = 'lost'")})


@_plant(story=wrong_clock)
def joined_without_the_time(garden: ExitStack) -> None:
    """A node begins with its own clock's time."""
    join = Node.join

    async def timeless(self: Node) -> None:
        with patch.object(HostClock, "learn", lambda *_: None):
            await join(self)

    garden.enter_context(patch.object(Node, "join", timeless))


@_plant()
def claims_untold(garden: ExitStack) -> None:
    """The history has no line for a claim."""
    _rewrite(garden, {"record_claims": (r"carray\((\?\d+)\)", r"carray(\1) where value < 0")})


def worlds(plant: Plant) -> Iterator[Report]:
    """Worlds in which this bug has a chance to show."""
    if plant.story is not None:
        yield plant.story().tell()
        return
    for seed in range(plant.first, plant.first + _MOST):
        plan = drawn(seed, only=plant.faults)
        weights = (6, 6, 2, 0, 0, 0, 2, 2) if "receiver" in plant.faults else plan.weights
        yield simulate(seed, plan=replace(plan, nodes=max(2, plan.nodes), every=1.5, weights=weights))
