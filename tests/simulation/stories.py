"""Worlds without chance: what the simulation has found, and what it finds too seldom, told step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tidings.drill.checker import InjectedFault, InjectionKind

from .loop import Host
from .nemesis import Call
from .plan import BEAT, LEASE, Order, Plan
from .world import Report, World, simulate

_OK = (1, 0, 0, 0, 0, 0, 0, 0)
_LATE = (0, 0, 0, 0, 0, 0, 0, 1)


class Story(NamedTuple):
    """A plan, and what happens in it."""

    plan: Plan
    arrange: Callable[[World], None]

    def tell(self) -> Report:
        """Run its world."""
        return simulate(self.plan.seed, plan=self.plan, arrange=self.arrange)


def _plan(*orders: Order, nodes: int = 2, slots: int = 8, storm: float = 15) -> Plan:
    return Plan(1, nodes, storm, orders, frozenset(), 1.0, False, _OK, slots)


def _weather(world: World, change: Callable[[Host, str, Call], None]) -> None:
    usual = world.nemesis.weather

    def changed(host: Host, verb: str) -> Call:
        call = usual(host, verb)
        change(host, verb, call)
        return call

    world.nemesis.weather = changed  # type: ignore[method-assign]


def wrong_clock() -> Story:
    """A node whose clock is ten minutes behind begins with a message that has a turn."""

    def arrange(world: World) -> None:
        def late(host: Host, verb: str, call: Call) -> None:
            if verb == "next_due" and world.seconds < 1:
                call.out = 0.3

        world.nemesis.skew = lambda: -600.0  # type: ignore[method-assign]
        _weather(world, late)

    return Story(_plan(Order("m0", 0.0, 0.0, "paced"), nodes=1), arrange)


def sleeping_reaper() -> Story:
    """A node misses one beat; a reaper reads it just then, and sleeps for a lease before it judges."""

    def arrange(world: World) -> None:
        def late(host: Host, verb: str, call: Call) -> None:
            if host.pid == 2 and verb == "write" and 3.5 < world.seconds < 4.5:
                call.fails = "before"
            if host.pid == 3 and verb == "read" and 4 < world.seconds < 5:
                call.back = LEASE + 0.5
                world.nemesis.log.append(InjectedFault(InjectionKind.CUT, 3, world.seconds, world.seconds + LEASE))

        _weather(world, late)

    return Story(_plan(*(Order(f"m{n}", 0.1 * n, 0.1 * n, "resend") for n in range(100))), arrange)


def late_claim() -> Story:
    """A node dies with a claim on its way, which is carried out after the node was buried."""

    def arrange(world: World) -> None:
        def late(host: Host, verb: str, call: Call) -> None:
            if host.pid == 3 and verb == "claim" and world.seconds > 2.9:
                call.out = 5.9
                world.later(0.1, lambda: world.kill(host, "at random") if host.is_alive else None)

        _weather(world, late)

    rest = (Order(f"m{n}", 1.0, 8.7 + 0.005 * n, "resend") for n in range(60))
    return Story(_plan(Order("first", 0.5, 3.0, "resend"), *rest, slots=3), arrange)


def late_start() -> Story:
    """The start of an attempt cannot be written before the attempt is cut off."""

    def arrange(world: World) -> None:
        def late(host: Host, verb: str, call: Call) -> None:
            if verb == "start" and world.seconds < 2:
                call.out = 5.9

        _weather(world, late)

    return Story(_plan(Order("m0", 0.5, 0.5, "paced")), arrange)


def late_settle() -> Story:
    """A node is given up while its result is on its way; it comes in while another one sends again."""

    def arrange(world: World) -> None:
        def late(host: Host, verb: str, call: Call) -> None:
            if host.pid == 2 and verb == "settle":
                call.out = 5.9
            if host.pid == 2 and verb == "write" and 0.55 < world.seconds < 9:
                call.fails = "before"
            if host.pid == 3 and verb == "claim" and world.seconds < 2:
                call.fails = "before"

        def answers(weights: tuple[int, ...]) -> None:
            world.receiver.behavior.weights = weights

        _weather(world, late)
        world.nemesis.log.append(InjectedFault(InjectionKind.CUT, 2, 0.5, 9.0))
        world.later(3.0, lambda: answers(_LATE))
        world.later(8.5, lambda: answers(_OK))

    return Story(_plan(Order("m0", 0.5, 0.5, "resend")), arrange)


def unknown_commit() -> Story:
    """On a file a claim is answered ahead of its commit; the commit is made, and nobody hears of it."""

    def arrange(world: World) -> None:
        def unheard(host: Host, verb: str, call: Call) -> None:
            if verb == "claim" and 2.9 < world.seconds < 3.05:
                call.fails = "after"

        _weather(world, unheard)

    return Story(replace(_plan(Order("m0", 0.5, 3.0, "resend"), nodes=1), ahead=True), arrange)


def flickering_line() -> Story:
    """For three leases a node reaches the database only between the times of its beats."""

    def arrange(world: World) -> None:
        def flicker(host: Host, verb: str, call: Call) -> None:
            is_beaten = 0.3 < world.seconds % BEAT / BEAT < 0.9
            if host.pid == 2 and verb == "write" and 1 < world.seconds < 3 * LEASE and not is_beaten:
                call.fails = "before"

        _weather(world, flicker)

    return Story(_plan(Order("m0", 1.0, 1.0, "resend"), storm=4 * LEASE), arrange)
