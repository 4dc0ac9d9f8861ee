"""A conversation of sixty messages whose process dies at commit after commit ends as if it had not (D11, E1).

In each message the process is killed right after one of its commits, a later one from message to message;
another node takes over. The figures compared: calendar, workflows, decisions, replies and notices.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.store.port import ClaimResult, Store
from tidings.store.sqlite import SqliteStore

from .shift_harness import FRI, SAT, SUN, Squad

BOUNDARIES = 16  # commits of one message, at the most
COMMITS = ("write", "enqueue", "keep", "claim", "start", "settle", "change")
MON, TUE = "20270118", "20270119"


class Gone(Exception):
    """The process has ended: it does nothing more."""


class Mortal:
    """A store as one process sees it: after so many commits the process is gone."""

    def __init__(self, real: Store) -> None:
        self._real = real
        self.left = -1  # commits until the end; negative: it lives
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return found if not callable(found) or name in ("may_work", "on_hint") else self._mortal(name, found)

    def _mortal(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*args: Any, **named: Any) -> Any:
            if self.is_dead:
                raise Gone
            answer = await call(*args, **named)
            if name in COMMITS and self.left >= 0 and not (isinstance(answer, ClaimResult) and not answer.tasks):
                if isinstance(answer, ClaimResult) and answer.durable is not None:
                    await answer.durable
                    answer = answer._replace(durable=None)
                self.left -= 1
                if self.left < 0:
                    self.is_dead = True
                    raise Gone
            return answer

        return called


def script() -> list[tuple[str, str]]:
    """Sixty lines of five speakers: requests, questions, answers, corrections, refusals, noise."""
    lines: list[tuple[str, str]] = []
    for date, other in ((FRI, SAT), (SAT, SUN), (SUN, MON), (MON, TUE)):
        lines += [
            ("ann", f"add {date}"), ("ben", "good morning"), ("abe", "1800-0600"),
            ("ben", f"add {date} 0600-1800 and add {other} 0600-0700"), ("ann", f"add {date} 1900-2000"),
            ("bea", f"remove {date} 0600-0700"), ("ann", f"add 42 {date} 1800-0600"),
            ("ada", f"nocrew 42 {date}"),
            ("abe", "1800-0600"), ("ben", f"maybe add {date} 1800-0600"), ("ann", f"nocrew {date}"),
            ("abe", "what?"), ("ann", "never mind"), ("bea", f"add {other}"), ("ben", f"{date} 0600-0630"),
        ]  # fmt: skip
    return lines


async def lived(store: Store, clock: ManualClock, shift: int | None) -> dict[str, Any]:
    """The whole conversation; `shift` says at which commit of the first message the process dies."""
    squad = await Squad(store, clock).open()
    deaths = 0
    for number, (who, text) in enumerate(script()):
        mortal = Mortal(store)
        await squad.hears(who, text)
        if shift is not None:
            await reborn(squad, mortal)
            mortal.left = (number + shift) % BOUNDARIES
        try:
            await squad.settle(seconds=1)
        except Gone:
            deaths += 1
        if shift is not None:
            await reborn(squad, store)
            for _ in range(2):  # seen, and seen again after a lease: then the dead one's work is taken
                await squad.worker.reaper.step()
                await squad.settle(seconds=60)
    days = {(date, s): await squad.day(date, s) for date in (FRI, SAT, SUN, MON, TUE) for s in ("34", "42")}
    unique = {message.id: message.text for message in squad.channels["chat"].sent}
    pages = {message.id: message.text.partition("\n")[0] for message in squad.channels["pager"].sent}
    ledger = await store.read("effect_page", calendar="shifts", tenant="default", before=1 << 60, limit=500, day=None)
    return {
        "days": days,
        "ledger": sorted((row["day"], row["squad"], row["action"], row["state"]) for row in ledger),
        "replies": list(unique.values()),
        "pages": sorted(pages.values()),
        "states": await squad.states(),
        "decisions": await squad.decisions(),
        "deaths": deaths,
    }


async def reborn(squad: Squad, store: Any) -> None:
    """Another process on the same database."""
    squad.worker.runner._executor.close()
    squad.store = store
    squad.calendar._store = store
    squad.build()
    await squad.worker.node.join()


CALM: dict[str, Any] = {}  # what the conversation comes to when nothing dies
SHIFTS = range(BOUNDARIES) if os.environ.get("TIDINGS_TEST_ALL_BOUNDARIES") else (3,)


@pytest.mark.parametrize("shift", SHIFTS)
async def test_sixty_messages_with_a_death_in_each_end_as_without(
    store: Store, clock: ManualClock, tmp_path: Path, shift: int
) -> None:
    """Same calendar, same replies, none doubled, none missing; no half hour changed twice."""
    if not CALM:
        calm_clock = ManualClock()
        calm_store = SqliteStore(tmp_path / "calm.db", now=calm_clock.now, inline=True)
        await calm_store.open()
        CALM.update(await lived(calm_store, calm_clock, None))
        await calm_store.close()
        assert CALM.pop("deaths") == 0
    killed = await lived(store, clock, shift)

    assert killed.pop("deaths") >= 20
    assert killed == CALM
