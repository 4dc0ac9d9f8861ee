"""Migrations: memory and calls per second against the bare client, and a limit kept by four processes.

    python -m bench.migration                          20,000 records, and 20 s at 25 writes a second
    python -m bench.migration --records 1000000        memory under 250 MB, at least 0.6 of the bare client
    python -m bench.migration --seconds 60 --only limit

Records go from an NDJSON file to the HTTP sandbox, one call each (bulk off). The bare client posts the same
bodies to the same sandbox with as many in flight, before and after. What arrived is counted by the sandbox: a
rate is printed only if every record is there once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import uvloop

from tidings.app import build
from tidings.migration.job_file import read_job
from tidings.migration.jobs import WORKING, JobState

from .bare_client import plain_client
from .bare_client import rate as rate_of
from .fleet import Sandbox, micros_of, sandbox, settings_of, workers
from .limits_fleet import WARM, most_within_a_second, throughput
from .noise import Noise
from .servers import postgres

IN_FLIGHT = 32
PER_SECOND = 25
PROCESSES = 4
TEXT = "x" * 200
MEMORY, RATIO, SHARE, OVER = 250, 0.6, 0.9, 1.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print what was seen; 0 when the bars hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.migration", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=20, help="length of the run at a limit")
    parser.add_argument("--only", choices=("move", "limit"))
    options = parser.parse_args(argv)
    result: dict[str, Any] = {}
    with Noise() as noise:
        if options.only != "limit":
            result["move"] = move(options.records)
            print(f"move: {result['move']}", file=sys.stderr, flush=True)
        if options.only != "move":
            result["limit"] = limit(options.seconds)
            print(f"limit: {result['limit']}", file=sys.stderr, flush=True)
    result |= {"others_cpu": noise.share, "all_hold": all(part["holds"] for part in result.values())}
    print(json.dumps(result))
    return 0 if result["all_hold"] else 1


def move(records: int) -> dict[str, Any]:
    """All records once, by one process on a file."""
    with tempfile.TemporaryDirectory(prefix="migration-") as name, sandbox(Path(name)) as phone:
        folder = Path(name)
        before = uvloop.run(bare_posts(phone.url, min(records, 20_000), "before"))
        write_source(folder / "people.ndjson", records)
        definition = job(folder, phone.url, {"concurrency": IN_FLIGHT})
        database = f"sqlite:///{folder}/tidings.db"
        with workers(1, database, {}) as (pid,):
            seconds, peak = asyncio.run(follow(database, definition, records, pid))
        after = uvloop.run(bare_posts(phone.url, min(records, 20_000), "after"))
        arrived = count_of(phone)
    assert arrived == records + 2 * bare_calls(records), f"{arrived:,} arrived"
    ours, bare = records / seconds, (before + after) / 2
    return {
        "records": records,
        "seconds": round(seconds, 1),
        "bare_per_s": round(bare),
        "ours_per_s": round(ours),
        "ratio": round(ours / bare, 3),
        "peak_mb": peak,
        "holds": peak < MEMORY and ours / bare >= RATIO,
    }


def limit(seconds: int) -> dict[str, Any]:
    """A limit per second, shared by four processes on one PostgreSQL."""
    records = PER_SECOND * seconds
    with tempfile.TemporaryDirectory(prefix="migration-") as name, sandbox(Path(name)) as phone:
        folder = Path(name)
        write_source(folder / "people.ndjson", records)
        definition = job(folder, phone.url, {"writes_per_second": PER_SECOND, "concurrency": 16}, batch_size=100)
        with postgres() as server, server.database() as dsn, workers(PROCESSES, dsn, {}) as pids:
            asyncio.run(follow(dsn, definition, records, pids[0]))
        lines = phone.lines()
    assert len({line["id"] for line in lines}) == len(lines) == records, "lost or doubled"
    times = sorted(micros_of(line["time"]) for line in lines)
    judged = [at for at in times if at >= times[0] + WARM]
    share, most = throughput(judged) / PER_SECOND, most_within_a_second(judged)
    return {
        "processes": PROCESSES,
        "records": records,
        "share": round(share, 3),
        "most_in_a_second": most,
        "holds": share >= SHARE and most <= PER_SECOND * OVER,
    }


def job(folder: Path, url: str, target: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """From the file to the phone; the key in a header makes it an upsert."""
    body = {"id": "{%key%}", "to": "{%name%}", "text": "{%text%}"}
    http = {"url": f"{url}/sandbox/messages", "body": body, "key_header": "idempotency-key"}
    return {
        "name": "bench",
        "source": {"kind": "ndjson", "path": str(folder)},
        "target": {"kind": "http", **http, **target},
        "types": {"people": {"fields": {"name": "name", "text": "text"}, **more}},
    }


def write_source(path: Path, records: int) -> None:
    """One line per record."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(records):
            file.write(f'{{"id": "{number}", "name": "person {number}", "text": "{TEXT}"}}\n')


async def follow(database: str, definition: Mapping[str, Any], records: int, pid: int) -> tuple[float, float]:
    """Run a job until it is over; gives its seconds and the most memory of the process that did it."""
    app = build(settings_of(database, {}))
    await app.open()
    try:
        view = await app.migrations.create(read_job(definition, is_local=True), by="bench")
        began = time.monotonic()
        await app.migrations.run(view.id, by="bench")
        for pause in cycle((0.2, 0.3, 0.5)):
            await asyncio.sleep(pause)
            view = await app.migrations.find(view.id)
            if view.state not in WORKING:
                break
        seconds = time.monotonic() - began
        status = await app.migrations.status(view.id)
        assert view.state is JobState.COMPLETED and status.done == records, status
        return seconds, peak_of(pid)
    finally:
        await app.close()


def peak_of(pid: int) -> float:
    """The most memory that a process has held, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    raise LookupError(pid)


def bare_calls(records: int) -> int:
    """Posts of the bare client, its warm-up included."""
    return min(records, 20_000) + 2 * IN_FLIGHT


async def bare_posts(url: str, n: int, mark: str) -> float:
    """Posts per second of the client alone, same bodies, same number in flight."""
    client, bodies = plain_client(), _bodies(mark)

    async def post(_: int) -> None:
        answer = await client.post(f"{url}/sandbox/messages").body_bytes(next(bodies)).build().send()
        assert answer.status < 300
        await answer.bytes()

    try:
        return await rate_of(post, n, IN_FLIGHT)
    finally:
        await client.close()


def _bodies(mark: str) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        body = {"id": f"{mark}-{number}", "to": f"person {number}", "text": TEXT}
        yield json.dumps(body).encode()


def count_of(phone: Sandbox) -> int:
    """How many have arrived, each once, or it is an error."""
    with urlopen(f"{phone.url}/sandbox/ledger?limit=1", timeout=60) as answer:
        counts = json.load(answer)["counts"]
    assert not counts["duplicates"], counts
    return int(counts["delivered"])


if __name__ == "__main__":
    sys.exit(main())
