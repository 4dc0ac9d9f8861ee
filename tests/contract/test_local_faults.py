"""Local faults cost no attempt: no free file descriptors, an unknown task kind (F33, F37)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tidings.kernel import task_actions as people
from tidings.kernel.clock import ManualClock
from tidings.model.task import NewTask, TaskState
from tidings.store.port import Store

from .kernel_harness import KernelHarness
from .receiver import answer, receiving

ROOT = Path(__file__).parents[2]


async def test_a_process_without_descriptors_has_certainly_not_sent() -> None:
    """No doubt and no failure: it is tried again, and goes out when there is a descriptor (F33)."""
    async with receiving() as receiver:
        receiver.script(answer(200, connection="close"), answer(200))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.contract.starved", receiver.url,
            cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await process.communicate()

    assert json.loads(said) == ["Done", "Retry", "Done"]
    assert len(receiver.requests) == 2


async def test_a_task_of_a_kind_that_nobody_knows_waits_for_somebody_who_does(store: Store, clock: ManualClock) -> None:
    """After a downgrade: put back with its reason, never discarded, while its neighbours go out (F37)."""
    world = await KernelHarness(store, clock).open()
    [strange] = (await store.enqueue([NewTask("main", "of the future", clock.now())])).ids
    known = await world.send()

    for _ in range(3):
        await world.step(seconds=61)

    row = await people.get_task(store, strange)
    history = await store.read("history_of", task=strange)
    assert row is not None and row["state"] == TaskState.PENDING
    assert "has no handler for 'of the future'" in history[-1]["detail"]
    assert (await world.show(known))["state"] == "sent"
    assert row["attempts"] == 0
