"""Taskiq on RabbitMQ: two worker processes, a task that does nothing but count.

    python -m bench.peers.taskiq drain --broker amqp://... --n 20000

Tasks are enqueued before; the clock runs from the first one done to the last. Nothing is recorded of them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from taskiq_aio_pika import AioPikaBroker

from ..calls import ROOT, serve
from ..counter import Counter, counter
from ..payload import content

BROKER, COUNTER = "BENCH_BROKER", "BENCH_COUNTER"
PROCESSES, AT_ONCE = 2, 100

broker = AioPikaBroker(os.environ.get(BROKER, "amqp://127.0.0.1"), qos=AT_ONCE)


@broker.task(task_name="work")  # type: ignore[untyped-decorator]
async def work(message: dict[str, str]) -> None:
    """Count it."""
    counter(os.environ[COUNTER]).add()


async def fill(n: int) -> float:
    """Enqueue so many; the broker is named by the environment."""
    await broker.startup()
    for first in range(0, n, 200):
        await asyncio.gather(*(work.kiq(content(number)) for number in range(first, min(n, first + 200))))
    await broker.shutdown()
    return float(n)


def drain(broker: str, n: int) -> float:
    """Messages/s of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        counted = Counter(Path(folder) / "count")
        environment = {**os.environ, BROKER: broker, COUNTER: str(Path(folder) / "count")}
        name = __spec__.name
        filling = [sys.executable, "-m", name, "fill", "--n", str(n)]
        subprocess.run(filling, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        words = ["-m", "taskiq", "worker", f"{name}:broker", "--workers", str(PROCESSES)]
        words += ["--max-async-tasks", str(AT_ONCE), "--log-level", "ERROR"]
        with subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
        ) as workers:
            try:
                return counted.rate(n)
            finally:
                workers.terminate()


if __name__ == "__main__":
    serve([drain, fill])
