"""Broadcasts under kill -9: while recipients are taken, while they are sent, while it is paused (B1, B5, E1).

At every look the books must add up, counted twice: by the tally that users see, and from the rows themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tidings.app import App
from tidings.drill.receiver import digest
from tidings.outbound.broadcasts.service import BroadcastService

from ..time_limits import Limit
from .conftest import Report
from .databases import Database
from .rig import STANDSTILL, Options, Rig, drill, message_refs, scaled
from .worker import CHANNEL

pytestmark = pytest.mark.crash

TEXT = "Water is rising: please move to the school on the hill. Bring warm clothes."
WINDOW = 40
_STATES = {
    "sent": "state = 'done'",
    "failed": "state = 'failed' and not unknown",
    "unknown": "state = 'failed' and unknown",
    "cancelled": "state = 'cancelled' and cancel_requested",
    "expired": "state = 'expired'",
    "skipped": "state = 'cancelled' and not cancel_requested",
}
_BOOKS = (
    "select (select total from {0}broadcasts) as total, (select taken from {0}broadcasts) as taken,"
    " (select count(*) from {0}messages where group_id is not null) as frozen,"
    " (select count(*) from {0}tasks where group_id is not null) as made,"
    " (select coalesce(sum(taken), 0) from {0}broadcast_parts) as parted"
    + "".join(
        f", (select count(*) from {{0}}tasks where group_id is not null and {rule}) as {word},"
        f" (select coalesce(sum(n), 0) from {{0}}task_group_counts"
        f" where outcome = '{'done' if word == 'sent' else word}') as counted_{word}"
        for word, rule in _STATES.items()
    )
)
_TO_SEND = (
    "select count(*) from {0}tasks where group_id is not null"
    f" and (state = 'processing' or (state = 'pending' and queue = '{CHANNEL}'))"
)


class Watch:
    """Looks at the books all the time, from outside."""

    def __init__(self, rig: Rig, app: App, id_: str) -> None:
        self._rig = rig
        self._broadcasts = BroadcastService(app.store, app.clock)
        self._id = id_
        self.looks = 0
        self.partly = 0  # looks at which some were taken and some were not

    async def look(self) -> dict[str, Any]:
        """One look: the tally adds up, and so do the rows, in one statement each."""
        shown = await self._broadcasts.show(self._id)
        assert sum(shown["counts"].values()) == shown["total"], shown
        assert min(shown["counts"].values()) >= 0, shown
        total, taken, frozen, made, parted, *pairs = (await self._rig.database.rows(_BOOKS))[0]
        assert total == frozen, "a recipient is missing, or there is one too many"
        assert taken == made == parted, (taken, made, parted)
        assert list(pairs[::2]) == list(pairs[1::2]), (list(_STATES), pairs)
        self.looks += 1
        self.partly += 0 < taken < total
        return shown

    @contextlib.asynccontextmanager
    async def all_the_time(self) -> AsyncIterator[None]:
        """Look while something happens."""
        ended = asyncio.Event()

        async def look() -> None:
            while not ended.is_set():
                began = time.monotonic()
                await self.look()
                await asyncio.sleep(max(0.01, time.monotonic() - began))  # at most half of the time

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            ended.set()
            await looking

    async def until(self, *states: str) -> dict[str, Any]:
        """Wait until it is in one of these states; fails when it gets no further."""
        limit = Limit(STANDSTILL)
        last: dict[str, Any] = {}
        while (shown := await self.look())["state"] not in states:
            if shown["counts"] != last:
                last = shown["counts"]
                limit.restart()
            assert not limit.is_over(), shown
            await asyncio.sleep(0.02)
        return shown

    async def parked(self) -> None:
        """Wait until no recipient is at work or in the channel's queue."""
        limit = Limit(STANDSTILL)
        while (await self._rig.database.rows(_TO_SEND))[0][0]:
            assert not limit.is_over(), "not all of it is parked"
            await asyncio.sleep(0.02)


async def cast(rig: Rig, refs: list[str], **options: Any) -> Watch:
    """Freeze a broadcast, and write down in the producer's log whom it is for."""
    app, journal = rig.producer._app, rig.producer._journal
    now = time.time()
    lines = [{"ref": ref, "digest": digest(TEXT), "due": now, "tried": now} for ref in refs]
    journal.write(*lines)
    body = {"channel": CHANNEL, "text": TEXT, "addresses": refs, **options}
    made = await app.outbound.broadcast_creator.create(body, key="cast")
    journal.write(*({**line, "acked": time.time()} for line in lines))
    return Watch(rig, app, made.answer["id"])


def options(on_unknown: str) -> Options:
    """A short lease, so that a drill is short."""
    return Options(on_unknown=on_unknown, lease=1.0, beat=0.2)


# In the middle of the transaction that takes recipients, moves their cursors, looks, or writes the end.
# All but the last come while there are still some to take: 300 recipients are 8 windows.
MOMENTS = ("group_take:2", "broadcast_part_taken:3", "broadcast_taken:2", "broadcast_check:2", "outbox_add:1")


async def test_killed_while_recipients_are_taken(tmp_path: Path, database: Database, report: Report) -> None:
    """Half a transaction never counts: cursors and tasks agree at every look, everybody gets it (B5)."""
    refs = message_refs("b", scaled(300, 3000))
    async with drill(tmp_path / "drill", database, options("resend")) as rig:
        watch = await cast(rig, refs)
        async with watch.all_the_time():
            for moment in MOMENTS:
                await rig.died(rig.spawn(window=WINDOW, dies_in=moment), moment)
            last = rig.spawn(window=WINDOW)
            await rig.working(last)
            await watch.until("completed")
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
    report(rig, verdict, kills=len(rig.faults), looks=watch.looks, partly=watch.partly)

    assert not verdict.violations
    assert verdict.delivered == len(refs)
    assert watch.partly, "it was never looked at half taken: this run proves nothing (R7)"
    assert not [fault.how for fault in rig.faults if fault.how.startswith("never")]


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_killed_while_it_is_sent(tmp_path: Path, database: Database, on_unknown: str, report: Report) -> None:
    """Nobody is lost; with `hold` nobody gets it twice, and who is in doubt is counted as held (E1)."""
    chance = random.Random(f"{type(database).__name__} {on_unknown}")
    refs = message_refs("s", scaled(300, 3000))
    async with drill(tmp_path / "drill", database, options(on_unknown), {"delay": (0.0, 0.05)}) as rig:
        watch = await cast(rig, refs)
        async with watch.all_the_time():
            for blow in range(scaled(4, 12)):
                sender = rig.spawn(window=WINDOW)
                await rig.until_seen(min(len(refs) - 60, rig.seen() + chance.randint(5, 45)))
                await asyncio.sleep(chance.uniform(0, 0.05))
                await rig.kill(sender, f"random {blow}")
            last = rig.spawn(window=WINDOW)
            await rig.working(last)
            shown = await watch.until("completed")
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
    report(rig, verdict, kills=len(rig.faults), looks=watch.looks, partly=watch.partly)

    assert not verdict.violations
    assert shown["counts"]["sent"] + shown["counts"]["unknown"] == len(refs)
    if on_unknown == "hold":
        assert not verdict.duplicates
        assert shown["counts"]["unknown"] == len(verdict.held)
    else:
        assert verdict.delivered == shown["counts"]["sent"] == len(refs)


async def test_killed_while_it_is_paused_and_resumed(tmp_path: Path, database: Database, report: Report) -> None:
    """Dead in the middle of parking, or of bringing back: nothing goes out meanwhile, nothing is lost."""
    refs = message_refs("p", scaled(240, 2000))
    async with drill(tmp_path / "drill", database, options("resend"), {"delay": (0.0, 0.03)}) as rig:
        watch = await cast(rig, refs)
        people = watch._broadcasts
        async with watch.all_the_time():
            for moment in ("group_queue:1", "broadcast_next:1"):
                await rig.died(rig.spawn(window=WINDOW, crash_at="sent:20"), "sending")
                await people.pause(watch._id)
                await rig.died(rig.spawn(window=WINDOW, dies_in=moment), f"parking {moment}")
                sender = rig.spawn(window=WINDOW)
                await rig.working(sender)
                await watch.until("paused")
                await watch.parked()
                seen = rig.seen()
                await asyncio.sleep(0.7)
                assert rig.seen() == seen, "something went out while it was paused"
                await rig.kill(sender, "paused")
                await people.resume(watch._id)
                await rig.died(rig.spawn(window=WINDOW, dies_in="group_queue:1"), "bringing back")
            last = rig.spawn(window=WINDOW)
            await rig.working(last)
            shown = await watch.until("completed")
        assert await rig.stop(last) == 0
        verdict = await rig.verdict()
    report(rig, verdict, kills=len(rig.faults), looks=watch.looks, partly=watch.partly)

    assert not verdict.violations
    assert verdict.delivered == shown["counts"]["sent"] == len(refs)
    assert not [fault.how for fault in rig.faults if fault.how.startswith("never")]


async def test_killed_while_it_is_loaded(tmp_path: Path, database: Database, monkeypatch: Any) -> None:
    """An upload whose process dies sends nothing; the same upload again takes everybody once (B4)."""
    monkeypatch.setattr("tidings.store.sqlite.SqliteStore.bulk", 20)
    monkeypatch.setattr("tidings.store.postgres.PostgresStore.bulk", 20)
    refs = message_refs("u", 130)

    async def rows(upto: int) -> AsyncIterator[tuple[int, Any]]:
        for number, ref in enumerate(refs, 1):
            if number > upto:
                raise asyncio.CancelledError  # as when the process goes
            yield number, {"address": ref}

    async with drill(tmp_path / "drill", database, options("resend")) as rig:
        app = rig.producer._app
        made = await app.outbound.broadcast_creator.create({"channel": CHANNEL, "text": TEXT, "recipients": "upload"})
        worker = rig.spawn(window=WINDOW)
        await rig.working(worker)
        for upto in (10, 50, 90):
            with pytest.raises(asyncio.CancelledError):
                await app.outbound.broadcast_creator.upload(made.answer["id"], rows(upto))
            assert rig.seen() == 0
        shown = await app.outbound.broadcast_creator.upload(made.answer["id"], rows(1000))
        assert (shown["total"], shown["duplicates"]) == (130, 0)
        await Watch(rig, app, made.answer["id"]).until("completed")
        assert sorted(copy.ref for copy in rig.copies()) == refs
        assert await rig.stop(worker) == 0
