"""The producer process of a drill: accepts messages at their times, and logs what was attempted and acknowledged.

Each call has an idempotency key; a call whose answer was lost is repeated with the same key, as a client
should. A restarted process continues where its log ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..app import App, build
from ..config import load
from ..model.errors import InProgress, TemporaryError
from ..model.message import Draft
from ..model.time import SECOND
from .json_log import JsonLog, read_log
from .parent_watch import end_with_parent
from .receiver import digest
from .workload import CHANNEL, SETTINGS_FILE, PlannedMessage, plan_messages

PRODUCER_LOG = "producer.jsonl"
_BATCH = 50


class MessageRequest(NamedTuple):
    """A message to be accepted; `due` in seconds since 1970 by this machine's clock, None: immediately."""

    ref: str
    due: float | None = None


class DrillProducer:
    """A producer with its own log. `skew` is how far the database's clock is ahead of this machine's."""

    def __init__(self, app: App, log: Path | str, channel: str, *, skew: float = 0.0) -> None:
        self._app, self._channel, self._skew = app, channel, skew
        self._journal = JsonLog(log)
        self.unknown = 0  # calls without an answer

    async def accept_each(self, wanted: Sequence[MessageRequest]) -> None:
        """Accept messages one by one, some concurrently."""
        for start in range(0, len(wanted), _BATCH):
            async with asyncio.TaskGroup() as group:
                for one in wanted[start : start + _BATCH]:
                    group.create_task(self._accept([one], self._accept_one))

    async def _accept(
        self, wanted: Sequence[MessageRequest], call: Callable[[Sequence[Draft]], Awaitable[None]]
    ) -> None:
        tried = time.time()
        drafts = [self._draft(one) for one in wanted]
        lines = [
            {"ref": one.ref, "digest": digest(draft.text), "due": tried if one.due is None else one.due, "tried": tried}
            for one, draft in zip(wanted, drafts, strict=True)
        ]
        self._journal.write(*lines)
        while True:
            try:
                await call(drafts)
                break
            except (TemporaryError, InProgress):
                self.unknown += 1
                await asyncio.sleep(0.1)
        acked = time.time()
        self._journal.write(*({**line, "acked": acked} for line in lines))

    def _draft(self, one: MessageRequest) -> Draft:
        at = None if one.due is None else round((one.due + self._skew) * SECOND)
        return Draft(self._channel, one.ref, f"{one.ref} {'x' * 100}", at=at)

    async def _accept_one(self, drafts: Sequence[Draft]) -> None:
        await self._app.messages.accept(drafts[0], key=f"key {drafts[0].to}")

    def close(self) -> None:
        self._journal.close()


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
    while todo and len(ready) < _BATCH and todo[0].accept <= now:
        ready.append(todo.popleft())
    return ready


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(feed(json.loads(sys.argv[1])))
