"""Dramatiq on RabbitMQ: two worker processes, an actor that does nothing but count.

    python -m bench.peers.dramatiq drain --broker amqp://... --n 20000

Messages are enqueued before; the clock runs from the first one done to the last. Nothing is recorded of them;
a message is acknowledged when its actor has returned.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from ..calls import ROOT, serve
from ..counter import Counter, counter
from ..payload import content

BROKER, COUNTER = "BENCH_BROKER", "BENCH_COUNTER"
PROCESSES, THREADS = 2, 8

if BROKER in os.environ:
    dramatiq.set_broker(RabbitmqBroker(url=os.environ[BROKER]))


@dramatiq.actor(queue_name="bench_dramatiq")  # type: ignore[untyped-decorator]
def work(message: dict[str, str]) -> None:
    """Count it."""
    counter(os.environ[COUNTER]).add()


def drain(broker: str, n: int) -> float:
    """Messages/s of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        counted = Counter(Path(folder) / "count")
        environment = {**os.environ, BROKER: broker, COUNTER: str(Path(folder) / "count")}
        dramatiq.set_broker(mine := RabbitmqBroker(url=broker))
        actor = dramatiq.actor(lambda message: None, actor_name="work", queue_name="bench_dramatiq", broker=mine)
        mine.declare_queue(work.queue_name, ensure=True)
        mine.flush(work.queue_name)
        for number in range(n):
            actor.send(content(number))
        mine.close()
        words = ["-m", "dramatiq", __spec__.name, "-p", str(PROCESSES), "-t", str(THREADS)]
        with subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
        ) as workers:
            try:
                return counted.rate(n)
            finally:
                workers.terminate()


if __name__ == "__main__":
    serve([drain])
