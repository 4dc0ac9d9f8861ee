"""The producer of a drill: accepts messages, and logs what was attempted and acknowledged.

Each call has an idempotency key; a call whose answer was lost is repeated with the same key, as a client
should.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidings.app import App
from tidings.model.errors import InProgress, TemporaryError
from tidings.model.message import Draft
from tidings.model.time import SECOND

from .json_log import JsonLog
from .receiver import digest

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

    async def produce(self, refs: Sequence[str], *, single: bool = False, delays: Sequence[float] = ()) -> None:
        """Accept messages in bulk or one by one; `delays` are cycled through for their due times."""
        now = time.time()
        late = [delays[i % len(delays)] if delays else 0.0 for i in range(len(refs))]
        wanted = [MessageRequest(ref, now + delay if delay else None) for ref, delay in zip(refs, late, strict=True)]
        if single:
            await self.accept_each(wanted)
            return
        for start in range(0, len(wanted), _BATCH):
            await self._accept(wanted[start : start + _BATCH], single=False)

    async def accept_each(self, wanted: Sequence[MessageRequest]) -> None:
        """Accept messages one by one, some concurrently."""
        for start in range(0, len(wanted), _BATCH):
            async with asyncio.TaskGroup() as group:
                for one in wanted[start : start + _BATCH]:
                    group.create_task(self._accept([one], single=True))

    def _draft(self, one: MessageRequest) -> Draft:
        at = None if one.due is None else round((one.due + self._skew) * SECOND)
        return Draft(self._channel, one.ref, f"{one.ref} {'x' * 100}", at=at)

    async def _accept(self, wanted: Sequence[MessageRequest], *, single: bool) -> None:
        tried = time.time()
        drafts = [self._draft(one) for one in wanted]
        lines = [
            {"ref": one.ref, "digest": digest(draft.text), "due": tried if one.due is None else one.due, "tried": tried}
            for one, draft in zip(wanted, drafts, strict=True)
        ]
        self._journal.write(*lines)
        while True:
            try:
                await (self._one(drafts[0]) if single else self._many(drafts))
                break
            except (TemporaryError, InProgress):
                self.unknown += 1
                await asyncio.sleep(0.1)
        acked = time.time()
        self._journal.write(*({**line, "acked": acked} for line in lines))

    async def _one(self, draft: Draft) -> None:
        await self._app.messages.accept(draft, key=f"key {draft.to}")

    async def _many(self, drafts: Sequence[Draft]) -> None:
        async def stream() -> AsyncIterator[tuple[int, Draft]]:
            for number, draft in enumerate(drafts):
                yield number, draft

        async for lines in self._app.messages.accept_many(stream(), key=f"bulk {drafts[0].to}"):
            for line in lines:
                if line.error is not None:
                    raise line.error

    def close(self) -> None:
        """Close the log."""
        self._journal.close()
