"""People: they cancel, retry, reschedule and pause, at bad moments and over a bad connection."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from tidings.kernel import task_actions
from tidings.model.errors import TemporaryError
from tidings.model.time import SECOND
from tidings.store.port import Step

from .link import Link
from .loop import Host
from .plan import LANES

if TYPE_CHECKING:
    from .world import World

_FITTING = {"cancel": ("pending", "processing"), "retry": ("failed",), "reschedule": ("pending",), "pause": ()}


class People:
    """What they did, for the judge: only what was answered counts as told."""

    def __init__(self, world: World, *, seed: str) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._link = Link(world, Host("people", 1))
        self.touched: set[str] = set()  # their end and their time are not the sender's alone
        self.cancelled: dict[str, float] = {}  # told 'cancelled', and when
        self.delayed: dict[str, tuple[float, float]] = {}  # told 'rescheduled': when, and to when

    async def meddle(self) -> None:
        """One wish after the other, while the storm lasts."""
        loop = asyncio.get_running_loop()
        end = self._world.plan.storm
        while True:
            await asyncio.sleep(self._random.expovariate(1 / 2.0))
            if loop.time() >= end:
                return
            known = self._world.query("select id, tenant, state from tasks order by id")
            if not known:
                continue
            wish = self._random.choice(tuple(_FITTING))
            fitting = [one for one in known if one[2] in _FITTING[wish]]
            task, ref, _ = self._random.choice(fitting or known)
            try:
                await self._wish(wish, task, ref)
            except TemporaryError:
                self._world.met["a person's wish unanswered"] += 1

    async def _wish(self, wish: str, task: int, ref: str) -> None:
        now = self._world.now()
        if wish == "pause":
            name = self._random.choice(list(LANES))
            await self._link.write([Step("queue_pause", {"name": name, "reason": "people"})])
            self._world.met["channel paused by hand"] += 1
            self._world.receiver.trouble.setdefault(name, []).append(asyncio.get_running_loop().time())
            await asyncio.sleep(self._random.uniform(1, 6))
            await self._link.write([Step("queue_resume", {"name": name})])
            self._world.receiver.trouble.setdefault(name, []).append(asyncio.get_running_loop().time())
            return
        self.touched.add(ref)
        if wish == "cancel":
            answer, _ = await task_actions.cancel(self._link, task, reason="a person said so")
            if answer is task_actions.TaskActionResult.DONE:
                self.cancelled[ref] = asyncio.get_running_loop().time()
        elif wish == "retry":
            answer, _ = await task_actions.retry(self._link, task, due_at=now, expires_at=None, reason="once more")
        else:
            due = now + round(self._random.uniform(0, 10) * SECOND)
            answer, _ = await task_actions.reschedule(self._link, task, due_at=due, expires_at=None)
            if answer is task_actions.TaskActionResult.DONE:
                told = asyncio.get_running_loop().time()
                self.delayed[ref] = (told, told + (due - self._world.now()) / SECOND)
        self._world.note("wish", wish, ref, answer)
        self._world.met[f"{wish} {answer}"] += 1

    async def resume_all(self) -> None:
        """Nothing stays paused by hand."""
        for (name,) in self._world.query("select name from queues where paused"):
            await self._link.write([Step("queue_resume", {"name": name})])
