"""A chat of sixty messages whose process is killed after commit after commit ends as one that was not (D11).

Compared is what people see: the calendar, the ledger, replies and notices as the receiver got them, the
workflows, and what was decided about every message.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import random
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from tidings.drill.harness import run_receiver
from tidings.drill.json_log import read_log
from tidings.model.time import SECOND

from ..time_limits import Limit
from .chat import ROUNDS, TALK, Life, live
from .conftest import Note
from .databases import Database, SqliteFile
from .rig import scaled

pytestmark = pytest.mark.crash

KINDS = ("enqueue", "write", "enqueue", "settle", "enqueue", "claim")  # commits after which a process dies
_SEEN = {
    "calendar": "select day, squad, slots from {0}shift_lines order by day, squad",
    "changes": "select day, squad, action, begins, ends, count(*) from {0}shift_changes"
    " group by day, squad, action, begins, ends order by day, squad, begins, ends, action",
    "ledger": "select day, squad, action, begins, ends, state, count(*) from {0}effects"
    " group by day, squad, action, begins, ends, state order by day, squad, begins, ends, action, state",
    "workflows": "select squad, topic, state from {0}workflows order by opened_at",
    "decisions": "select text, decision, reason from {0}handled_messages order by n",
    "inbox": "select text, ended from {0}inbox order by n",
    "cases": "select reason, times from {0}cases order by id",
    "open": "select count(*) from {0}tasks where state <> 'done'",
    "commands": "select count(*) from {0}shift_changes",
}


@pytest.fixture(scope="module")
def nursery() -> ForkServerContext:
    """Where processes are born in a moment, because everything is loaded already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.chat"])
    return context


@pytest.fixture(scope="module")
def start() -> int:
    """The instant of the first line, in whole seconds."""
    return int(time.time()) * SECOND


@pytest.fixture(scope="module")
def calm(nursery: ForkServerContext, start: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the chat comes to when nothing dies."""
    folder = tmp_path_factory.mktemp("calm")
    database = SqliteFile(folder / "tidings.db")
    with run_receiver(folder / "receiver.jsonl", {"delay": (0.0, 0.0)}) as port:
        assert _lived(nursery, Life(database.url, port, start)) == 0
    seen = asyncio.run(_seen(database, folder / "receiver.jsonl"))
    assert seen["open"] == [(0,)]
    assert seen["commands"][0][0] >= 3 * ROUNDS, "too little happens: this chat proves nothing (R7)"
    assert len(seen["said"]) >= 8 * ROUNDS
    return seen


async def test_a_chat_killed_after_commits_ends_as_one_that_was_not(
    nursery: ForkServerContext, start: int, calm: dict[str, Any], database: Database, tmp_path: Path, note: Note
) -> None:
    """Same calendar, same replies in the same order, none missing, none doubled but as a copy of itself."""
    chance = random.Random(f"chat {type(database).__name__}")
    kills, deaths = scaled(6, 120), 0
    log = tmp_path / "receiver.jsonl"
    with run_receiver(log, {"delay": (0.0, 0.0)}) as port:
        for kind in itertools.islice(itertools.cycle(KINDS), kills):
            after = chance.randint(1, max(2, 100 // kills))
            life = Life(database.worker_url, port, start, after, kind)
            code = await asyncio.to_thread(_lived, nursery, life)
            assert code in (0, -9), f"a worker failed with {code}"
            deaths += code == -9
        assert await asyncio.to_thread(_lived, nursery, Life(database.worker_url, port, start)) == 0
    seen = await _seen(database, log)
    note(messages=ROUNDS * len(TALK), kills=deaths, replies=len(seen["said"]), copies=seen.pop("copies"))

    assert deaths >= kills // 2, "too few died: this run proves nothing (R7)"
    calm = {what: found for what, found in calm.items() if what != "copies"}
    assert seen == calm


def _lived(nursery: ForkServerContext, life: Life) -> int:
    """Let a process live; gives its exit code."""
    process = nursery.Process(target=live, args=(life,))
    process.start()
    limit = Limit(60)
    while process.is_alive():
        process.join(max(1, limit.left))
        if limit.is_over() and process.is_alive():
            process.kill()
            process.join()
            raise AssertionError("it did not come to an end in a minute")
    return int(process.exitcode or 0)


async def _seen(database: Database, log: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {
        what: [tuple(row) for row in await database.rows(question)] for what, question in _SEEN.items()
    }
    arrived = list(read_log(log))
    unique = {line["id"]: (line["ref"], line["digest"]) for line in arrived}
    seen["said"] = [said for said in unique.values() if said[0] != "boss"]
    seen["told"] = sorted(said for said in unique.values() if said[0] == "boss")
    seen["copies"] = len(arrived) - len(unique)
    return seen
