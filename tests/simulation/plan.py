"""A world's plan, drawn from its seed: how many nodes, what is to be sent, which faults may come."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta

from tidings.kernel.breaker import BreakerRule
from tidings.kernel.lanes import Lane
from tidings.kernel.retry import Backoff, RetryPolicy, RetryRule
from tidings.model.task import OnUnknown

LEASE = 4.0
BEAT = 1.0
DEADLINE = 2.0
LONGEST = 6.0  # the deadline of a channel that takes longer than a lease
RATE = 4

FAULTS = (
    "kill", "kill at", "pause", "pause at", "cut", "cut all", "slow", "stop", "skew", "outage",
    "store", "hints", "receiver", "poison", "people", "rush",
)  # fmt: skip

_POLICY = RetryPolicy(
    "simulated",
    RetryRule(60, Backoff.FIXED, timedelta(seconds=0.5)),
    {"throttling": RetryRule(60, Backoff.FIXED, timedelta(seconds=1))},
)


def _lane(queue: str, on_unknown: OnUnknown, *, deadline: float = DEADLINE, per_second: float | None = None) -> Lane:
    return Lane(
        queue,
        _POLICY,
        on_unknown,
        timedelta(seconds=deadline),
        per_second=per_second,
        breaker=BreakerRule(5, timedelta(seconds=4)),
    )


LANES = {
    lane.queue: lane
    for lane in (
        _lane("resend", OnUnknown.RESEND),
        _lane("hold", OnUnknown.HOLD),
        _lane("ask", OnUnknown.ASK, deadline=LONGEST),
        _lane("paced", OnUnknown.HOLD, per_second=RATE),
    )
}


@dataclass(frozen=True, slots=True)
class Order:
    """One message to be accepted: when, and when it is due (seconds of the world)."""

    ref: str
    at: float
    due: float
    queue: str
    priority: int = 5
    key: str | None = None
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided before the world begins."""

    seed: int
    nodes: int
    storm: float  # seconds in which faults come
    orders: tuple[Order, ...]
    faults: frozenset[str]
    every: float  # mean seconds between two faults
    ahead: bool  # claims are known before they are durable
    weights: tuple[int, ...]  # of the receiver's ways
    slots: int = 8


def drawn(seed: int, *, hours: float = 0, only: frozenset[str] | None = None) -> Plan:
    """The plan of a seed. With `hours`, a long world instead of a short one; with `only`, these faults."""
    chance = random.Random(f"plan {seed}")
    storm = hours * 3600 if hours else chance.uniform(8, 20)
    count = int(storm * 0.8) if hours else chance.randint(8, 24)
    faults = frozenset(name for name in FAULTS if chance.random() < 0.35)
    if chance.random() < 0.08:
        faults = frozenset()
    if only is not None:
        faults = only
    weights = [30, 2, *(chance.choice((0, 1, 3)) for _ in range(6))] if "receiver" in faults else [1]
    plan = Plan(
        seed,
        chance.choice((1, 2, 2, 3, 3)),
        storm,
        (),
        faults,
        chance.uniform(1, 8) if not hours else 60,
        chance.random() < 0.3,
        tuple([*weights, *[0] * (8 - len(weights))]),
        chance.choice((3, 8)),
    )
    orders = [_order(chance, n, storm) for n in range(count)]
    if "rush" in faults:
        orders = _rushed(orders)
    return replace(plan, orders=tuple(orders))


def _rushed(orders: list[Order]) -> list[Order]:
    """Half of them at once, on the channel that has a rate."""
    return [
        order if n % 2 else replace(order, queue="paced", key=None, at=1.0, due=2.0, expires=None)
        for n, order in enumerate(orders)
    ]


def _order(chance: random.Random, n: int, storm: float) -> Order:
    at = chance.uniform(0, storm * 0.8)
    due = at + chance.choice((0.0, 0.0, chance.uniform(0, 8)))
    queue = chance.choice(("resend", "resend", "hold", "hold", "ask", "paced"))
    key = chance.choice((None, None, "a", "b"))
    if key is not None:
        at = due = n * 0.3  # in one order, so that the order of arrival can be judged
    expires = due + chance.uniform(1, 30) if chance.random() < 0.1 and key is None else None
    return Order(f"m{n}", at, due, queue, chance.choice((2, 5, 5, 8)), key, expires)
