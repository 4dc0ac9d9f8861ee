"""The producer's process of a drill: has the plan's messages accepted at their times.

Started again after its death it goes on where its log ends: what had no answer is asked for again under the
same key, as a client should.
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
from .journal import lines
from .orphan import end_with_parent
from .plan import CHANNEL, SETTINGS, Line, plan
from .producer import Producer, Wanted

LOG = "producer.jsonl"
_AT_ONCE = 50


async def feed(options: dict[str, Any]) -> None:
    """Until everything of the plan was accepted."""
    answered = {line["ref"] for line in lines(Path(LOG)) if "acked" in line}
    todo = deque(line for line in plan(**options["plan"]) if line.ref not in answered)
    app = build(load(SETTINGS))
    try:
        await app.open()
        producer = Producer(app, LOG, CHANNEL, skew=options["skew"])
        begin = began(Path("begin"))
        while todo:
            ready = _ready(todo, time.time() - begin)
            await producer.accept_each([Wanted(line.ref, begin + line.due) for line in ready])
            if todo:
                await asyncio.sleep(max(0.0, begin + todo[0].accept - time.time()))
    finally:
        await app.close()


def began(file: Path) -> float:
    """When the first of us began, which is now if there was none."""
    if not file.exists():
        written = file.with_suffix(".new")
        written.write_text(str(time.time()))
        written.rename(file)
    return float(file.read_text())


def _ready(todo: deque[Line], now: float) -> list[Line]:
    """Taken out of what is to do: those whose time has come, not all at once."""
    ready: list[Line] = []
    while todo and len(ready) < _AT_ONCE and todo[0].accept <= now:
        ready.append(todo.popleft())
    return ready


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(feed(json.loads(sys.argv[1])))
