"""The injector: draws faults from the seed, and writes down each one, because only that excuses anything."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.drill.checker import InjectedFault, InjectionKind

from .link import PATIENCE
from .loop import Host
from .plan import LANES, LEASE, Plan

if TYPE_CHECKING:
    from .world import World

_MOMENTS = (
    ("claim", "before"), ("claim", "after"), ("start", "after"), ("send", "before"), ("settle", "before"),
    ("settle", "after"),
)  # fmt: skip
_STRIKES = ("kill", "kill at", "pause", "pause at", "cut", "cut all", "slow", "stop", "skew", "outage")


@dataclass(slots=True)
class Call:
    """What one call of the store meets."""

    out: float
    back: float
    fails: str = ""


class Nemesis:
    """Faults while the storm lasts; then everything is healed."""

    def __init__(self, world: World, plan: Plan, *, seed: str) -> None:
        self._world = world
        self._plan = plan
        self._random = random.Random(seed)
        self._calls = random.Random(f"{seed} calls")
        self._cuts: dict[int, float] = {}  # pid, or 0 for all: until when
        self._slow: dict[int, float] = {}
        self._armed: dict[int, tuple[str, str, str]] = {}
        self.log: list[InjectedFault] = []
        self.is_over = False

    # -- what the store's calls ask

    def weather(self, host: Host, verb: str) -> Call:
        """What this call meets."""
        chance = self._calls
        call = Call(chance.uniform(0.0005, 0.004), chance.uniform(0.0005, 0.004))
        if self.is_over:
            return call
        if self._slow.get(host.pid, 0) > self._now:
            setattr(call, chance.choice(("out", "back")), chance.uniform(0.2, PATIENCE * 1.1))
        if "store" in self._plan.faults and chance.random() < 0.04:
            call.fails = chance.choice(("before", "after"))
        return call

    def is_cut(self, host: Host) -> bool:
        """Whether this process cannot reach the database now."""
        return max(self._cuts.get(host.pid, 0), self._cuts.get(0, 0)) > self._now

    def skew(self) -> float:
        """By how many seconds the wall clock of a new process is ahead."""
        return self._random.uniform(-600, 600) if "skew" in self._plan.faults and not self.is_over else 0.0

    def loses_hint(self) -> bool:
        """Whether the next hint is lost."""
        return "hints" in self._plan.faults and not self.is_over and self._calls.random() < 0.7

    def strikes(self, host: Host, verb: str, when: str) -> bool:
        """A process passes a moment: an armed fault comes now."""
        kind, *moment = self._armed.get(host.pid, ("", "", ""))
        if not kind or moment != [verb, when] or not host.is_alive or self.is_over:
            return False
        del self._armed[host.pid]
        if kind == "kill at":
            self._kill(host, f"{when} {verb}")
        else:
            self._pause(host, self._random.uniform(0.5, 3) * LEASE, f"{when} {verb}")
        return True

    # -- the storm

    async def storm(self) -> None:
        """Fault after fault."""
        kinds = [kind for kind in _STRIKES if kind in self._plan.faults]
        end = self._now + self._plan.storm
        while kinds:
            await asyncio.sleep(self._random.expovariate(1 / self._plan.every))
            if self._now >= end:
                break
            self._strike(self._random.choice(kinds))
        await asyncio.sleep(max(0.0, end - self._now))
        self._heal()

    def _strike(self, kind: str) -> None:
        host = self._random.choice(self._world.nodes).host
        if not host.is_alive or host.is_paused:
            return
        length = self._random.uniform(0.3, 2.5) * LEASE
        match kind:
            case "kill":
                self._kill(host, "at random")
            case "pause":
                self._pause(host, length, "at random")
            case "kill at" | "pause at":
                self._armed[host.pid] = (kind, *self._random.choice(_MOMENTS))
            case "cut" | "cut all":
                target = host.pid if kind == "cut" else 0
                self._cuts[target] = max(self._cuts.get(target, 0), self._now + length)
                self._note(InjectedFault(InjectionKind.CUT, target, self._now, self._now + length, kind))
            case "slow":
                self._slow[host.pid] = self._now + length
                self._note(
                    InjectedFault(InjectionKind.CUT, host.pid, self._now, self._now + length + PATIENCE, "slow store")
                )
            case "stop":
                self._world.stop(host)
                self._world.met["node stopped"] += 1
            case "skew":
                self._world.node_of(host).clock.skew = self._random.uniform(-600, 600)
                self._world.met["clock set"] += 1
            case "outage":
                self._world.receiver.behavior.down[self._random.choice(list(LANES))] = self._now + length
                self._world.met["channel down"] += 1

    def _kill(self, host: Host, how: str) -> None:
        self._world.kill(host, how)

    def killed(self, host: Host, how: str) -> None:
        """A process was killed, by the injector or by a message."""
        self._note(InjectedFault(InjectionKind.KILL, host.pid, self._now, self._now, how))
        self._world.met["killed " + ("by poison" if how.startswith("poison") else how)] += 1

    def _pause(self, host: Host, length: float, how: str) -> None:
        host.pause()
        self._note(InjectedFault(InjectionKind.PAUSE, host.pid, self._now, self._now + length, how))
        self._world.met["paused " + ("over a lease" if length > LEASE else "shortly")] += 1
        asyncio.get_running_loop().call_later(length, host.go_on, context=self._world.server.context)

    def _heal(self) -> None:
        self.is_over = True
        self._cuts.clear()
        self._slow.clear()
        self._armed.clear()
        behavior = self._world.receiver.behavior
        behavior.weights, behavior.down = (1, 0, 0, 0, 0, 0, 0, 0), {}
        self._world.note("healed")

    def _note(self, fault: InjectedFault) -> None:
        self.log.append(fault)
        self._world.note("fault", fault.kind, fault.target, round(fault.end, 3), fault.how)

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()
