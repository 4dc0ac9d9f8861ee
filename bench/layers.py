"""A message's CPU, layer by layer: of a bulk accept, and of a drain with a channel that does nothing.

    python -m bench.layers                     100,000 messages on each store, one JSON line at the end
    python -m bench.layers --messages 20000

Again and again while CPU is used, the innermost frame is looked at. One of ours counts for its layer (with
what C does for it there, such as SQLite); any other counts for the driver and the event loop.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvloop

import tidings
from tidings.model.task import OnUnknown

from .engine import Marking, engine
from .noise import Noise, cpu_of_family
from .servers import postgres

MESSAGES = 100_000
EVERY = 0.001  # seconds of CPU between two looks, if the system's own clock is as fine as that
LAYERS = ("outbound", "kernel", "store", "observability", "model")
ELSE = "driver and event loop"
SERVER = "PostgreSQL"
_OURS = str(Path(next(iter(tidings.__path__)))) + "/"
_BENCH = str(Path(__file__).parent) + "/"


class Costs(NamedTuple):
    """Microseconds of CPU for each message."""

    accept: Mapping[str, float]
    drain: Mapping[str, float]


def layer_of(file: str) -> str | None:
    """The layer that a file belongs to; None for the measurement itself."""
    if file.startswith(_BENCH):
        return None
    return file.removeprefix(_OURS).partition("/")[0] if file.startswith(_OURS) else ELSE


@contextmanager
def sampled(found: dict[str, float], n: int) -> Iterator[None]:
    """Fill `found` with what each layer cost meanwhile."""
    looks: Counter[str | None] = Counter()

    def look(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            looks[layer_of(frame.f_code.co_filename)] += 1

    before = signal.signal(signal.SIGPROF, look)
    own, family = time.process_time(), cpu_of_family()
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        own, family = time.process_time() - own, cpu_of_family() - family
        each = 1e6 * own / n / max(1, looks.total())
        found.update({layer: count * each for layer, count in looks.items() if layer is not None})
        found[SERVER] = 1e6 * max(0.0, family - own) / n


async def costs(url: str, n: int) -> Costs:
    """What n messages cost on this database."""
    accept: dict[str, float] = {}
    drain: dict[str, float] = {}
    async with engine(url, Marking(OnUnknown.RESEND), slots=256) as ours:
        with sampled(accept, n):
            await ours.fill(n)
        await ours.tidy()
        with sampled(drain, n):
            ours.worker.start()
            await ours.until_settled(n)
        await ours.verify(n)
    return Costs(accept, drain)


def table(found: Mapping[str, Costs]) -> str:
    """One row a layer, one column a store and a stage."""
    columns = [(f"{store}, {stage}", getattr(each, stage)) for store, each in found.items() for stage in Costs._fields]
    lines = ["".join([f"{'µs of CPU a message':<24}", *(f"{name:>20}" for name, _ in columns)])]
    for layer in (*LAYERS, ELSE, SERVER):
        lines.append("".join([f"{layer:<24}", *(f"{values.get(layer, 0):>20.1f}" for _, values in columns)]))
    lines.append("".join([f"{'together':<24}", *(f"{sum(values.values()):>20.1f}" for _, values in columns)]))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both stores."""
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    n = parser.parse_args(argv).messages
    found: dict[str, Costs] = {}
    with Noise() as noise, tempfile.TemporaryDirectory() as folder:
        with postgres() as server, server.database() as url:
            found["PostgreSQL"] = uvloop.run(costs(url, n))
        found["SQLite"] = uvloop.run(costs(f"sqlite:///{folder}/layers.db", n))
    print(table(found))
    print(json.dumps({"messages": n, "others_cpu": noise.share, **{k: v._asdict() for k, v in found.items()}}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
