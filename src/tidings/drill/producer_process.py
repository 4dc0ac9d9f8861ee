"""The producer process of a drill: accepts the planned messages at their times.

A restarted process continues where its log ends: calls without an answer are repeated with the same
idempotency key, as a client should.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from ..app import build
from ..config import load
from .json_log import read_log
from .parent_watch import end_with_parent
from .producer import DrillProducer, MessageRequest
from .workload import CHANNEL, SETTINGS_FILE, PlannedMessage, plan_messages

PRODUCER_LOG = "producer.jsonl"
_AT_ONCE = 50


async def feed(options: dict[str, Any]) -> None:
    """Accept all planned messages."""
    answered = {line["ref"] for line in read_log(Path(PRODUCER_LOG)) if "acked" in line}
    todo = deque(line for line in plan_messages(**options["plan"]) if line.ref not in answered)
    app = build(load(SETTINGS_FILE))
    try:
        await app.open()
        producer = DrillProducer(app, PRODUCER_LOG, CHANNEL, skew=options["skew"])
        begin = began(Path("begin"))
        while todo:
            ready = _ready(todo, time.time() - begin)
            await producer.accept_each([MessageRequest(line.ref, begin + line.due) for line in ready])
            if todo:
                await asyncio.sleep(max(0.0, begin + todo[0].accept - time.time()))
    finally:
        await app.close()


def began(file: Path) -> float:
    """Return when the first producer started; now if this is the first."""
    if not file.exists():
        written = file.with_suffix(".new")
        written.write_text(str(time.time()))
        written.rename(file)
    return float(file.read_text())


def _ready(todo: deque[PlannedMessage], now: float) -> list[PlannedMessage]:
    """Remove and return the messages that are due, up to a limit."""
    ready: list[PlannedMessage] = []
    while todo and len(ready) < _AT_ONCE and todo[0].accept <= now:
        ready.append(todo.popleft())
    return ready


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(feed(json.loads(sys.argv[1])))
