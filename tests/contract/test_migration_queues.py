"""Migrations of a tenant or a priority have their own queue, which chosen processes serve (C12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidings.app import App, build
from tidings.config import Settings
from tidings.dispatch.roles import parse_share
from tidings.kernel.clock import ManualClock
from tidings.migration.job_file import read_job
from tidings.store.port import Store

from ..encryption import KEY

QUEUES = ("tenant=acme", "priority=1")


def process(store: Store, clock: ManualClock, *queues: str) -> App:
    """One process of a fleet that serves these queues, as `tidings serve --queue` builds it."""
    settings = Settings(database="sqlite:///unused.db", migration_queues=QUEUES, encryption_keys=(KEY,))
    share = parse_share(["worker", "scheduler"], queues, None)
    return build(settings, clock=clock, store=store, share=share)


async def work(app: App, clock: ManualClock) -> None:
    """Run all that is due in this process."""
    for _ in range(8):
        await app.worker.node.beat()
        for actor in app.actors:
            if actor.name in ("extractor", "batch_scheduler"):
                await actor.step()
        await app.worker.runner.step()
        clock.advance(1)


async def test_each_tenant_and_priority_runs_in_the_process_of_its_queue(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    """A process runs the jobs of its queues to the end and leaves the others alone."""
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "people.ndjson").write_text(json.dumps({"id": "1", "name": "Ada"}) + "\n")

    def job(name: str, **more: Any) -> Any:
        ends = {"source": {"kind": "ndjson", "path": str(tmp_path / "from")}}
        ends["target"] = {"kind": "ndjson", "path": str(tmp_path / name)}
        return read_job(
            {"name": name, "types": {"people": {"fields": {"name": "name"}}}, **ends, **more}, is_local=True
        )

    first = process(store, clock, "migration:tenant=acme", "migration:priority=1")
    second = process(store, clock, "migration")
    for app in (first, second):
        await app.open()
        await app.worker.node.join()
    jobs = {
        one.name: (await first.migrations.create(one, by="ada")).id
        for one in (job("acme", tenant="acme"), job("urgent", priority=1), job("usual"))
    }
    for id_ in jobs.values():
        await first.migrations.run(id_, by="ada")

    async def states() -> dict[str, str]:
        return {name: str((await first.migrations.find(id_)).state) for name, id_ in jobs.items()}

    await work(first, clock)
    assert await states() == {"acme": "completed", "urgent": "completed", "usual": "running"}
    await work(second, clock)
    assert await states() == dict.fromkeys(jobs, "completed")
    for app in (first, second):
        await app.connections.close()
