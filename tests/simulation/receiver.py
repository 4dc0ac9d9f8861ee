"""The receiver: the other side of every channel, with a ledger of what arrived.

It writes a line before it answers. Requests travel by themselves: what a process has sent arrives, whatever
becomes of the process.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidings.drill.checker import ReceivedCopy, ReceiverAction
from tidings.kernel.lanes import Lane
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown, Task, TaskId, Transition
from tidings.store.port import Step

from .loop import Host
from .plan import LANES, LEASE

if TYPE_CHECKING:
    from .link import Link
    from .world import World

_WAYS = ("ok", "slow", "500", "429", "429 for all", "400", "dropped", "late")


@dataclass(slots=True)
class Manners:
    """How requests are answered while the storm lasts: weights of the ways, in their order."""

    weights: tuple[int, ...] = (20, 2, 2, 1, 0, 0, 1, 1)
    down: dict[str, float] = field(default_factory=dict)  # until when a channel answers nothing but 500


class Receiver:
    """Every channel's other side."""

    def __init__(self, world: World, behavior: Manners, *, seed: str) -> None:
        self._world = world
        self._random = random.Random(seed)
        self.behavior = behavior
        self.copies: list[ReceivedCopy] = []
        self.queue_of: dict[str, str] = {}
        self.trouble: dict[str, list[float]] = {}  # when a channel was answered badly
        self._seen: Counter[str] = Counter()

    def request(self, host: Host, task: Task) -> asyncio.Future[str]:
        """Send; gives where the answer will come, if it comes."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        delay = self._random.uniform(0.001, 0.02)
        asyncio.get_running_loop().call_later(
            delay, self._arrive, host.pid, task, answer, context=self._world.server.context
        )
        return answer

    def knows(self, ref: str) -> bool:
        """Whether a message was taken, for channels that can be asked."""
        return bool(self._seen[ref])

    def _arrive(self, pid: int, task: Task, answer: asyncio.Future[str]) -> None:
        now, ref = asyncio.get_running_loop().time(), task.tenant
        way = self._way(task.queue)
        did = (
            ReceiverAction.REFUSED
            if way[:1] in "45"
            else ReceiverAction(way)
            if way in ("dropped", "late")
            else ReceiverAction.OK
        )
        after = {"slow": self._random.uniform(0.3, 1.8), "late": LANES[task.queue].patience + 1}.get(
            way, self._random.uniform(0.0, 0.05)
        )
        self.copies.append(ReceivedCopy(now, ref, str(task.id), task.attempts, pid, ref, did, after))
        self.queue_of[ref] = task.queue
        if did is not ReceiverAction.REFUSED:
            self._seen[ref] += 1
        if way not in ("ok", "slow"):
            self.trouble.setdefault(task.queue, []).append(now)
        self._world.note("arrived", ref, pid, task.attempts, way)
        self._world.met[f"receiver {way}"] += 1
        asyncio.get_running_loop().call_later(after, _reply, answer, way)

    def _way(self, queue: str) -> str:
        if self.behavior.down.get(queue, 0) > asyncio.get_running_loop().time():
            return "500"
        return self._random.choices(_WAYS, self.behavior.weights)[0]


def _reply(answer: asyncio.Future[str], way: str) -> None:
    if answer.done():
        return
    if way == "dropped":
        answer.set_exception(ConnectionResetError())
    else:
        answer.set_result(way)


class Sender:
    """The handler of every task: one request to the receiver, within the lane's deadline."""

    listens = False

    def __init__(self, world: World, host: Host, link: Link, lanes: Mapping[str, Lane]) -> None:
        self._world = world
        self._host = host
        self._link = link
        self._lanes = lanes
        self._receipts = 0

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """Contents come from the database, so they may fail to come."""
        await self._link.read("now")
        return {task.id: None for task in tasks}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Nothing of its own."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt."""
        lane, world = self._lanes[task.queue], self._world
        if task.tenant in world.poison:
            world.kill(self._host, f"poison {task.tenant}")
            await asyncio.get_running_loop().create_future()
        if lane.on_unknown is OnUnknown.ASK and task.unknown and world.receiver.knows(task.tenant):
            world.met["asked and found"] += 1
            return Done("found")
        if world.nemesis.strikes(self._host, "send", "before"):
            await asyncio.sleep(0)  # dead or paused between the last look at the lease and the first byte
        elif world.seconds - self._host.beaten_at > LEASE:
            world.accuse("sent after its lease had ended", task.tenant)
        try:
            async with asyncio.timeout(lane.deadline.total_seconds()):
                return self._outcome(await world.receiver.request(self._host, task))
        except TimeoutError:
            return Unknown("no answer within the deadline")
        except ConnectionResetError:
            return Unknown("the connection was cut")

    def _outcome(self, way: str) -> Outcome:
        match way:
            case "500":
                return Retry(Category.TEMPORARY, "500")
            case "429" | "429 for all":
                return Retry(Category.THROTTLING, "429", timedelta(seconds=2), whole_channel=way == "429 for all")
            case "400":
                return Reject(Category.PERMANENT, "400")
            case _:
                self._receipts += 1
                return Done("r" if self._receipts % 2 else None)
