"""The producer of the crash drills: that of `tidings drill`, which can also accept in bulk and at once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

from tidings.drill.producer import DrillProducer, MessageRequest
from tidings.model.message import Draft

_BATCH = 50


class CrashProducer(DrillProducer):
    """A producer of messages that are due at once or after a delay."""

    async def produce(self, refs: Sequence[str], *, single: bool = False, delays: Sequence[float] = ()) -> None:
        """Accept messages in bulk or one by one; `delays` are cycled through for their due times."""
        now = time.time()
        late = [delays[i % len(delays)] if delays else 0.0 for i in range(len(refs))]
        wanted = [MessageRequest(ref, now + delay if delay else None) for ref, delay in zip(refs, late, strict=True)]
        if single:
            await self.accept_each(wanted)
            return
        for start in range(0, len(wanted), _BATCH):
            await self._accept(wanted[start : start + _BATCH], self._accept_many)

    async def _accept_many(self, drafts: Sequence[Draft]) -> None:
        async def stream() -> AsyncIterator[tuple[int, Draft]]:
            for number, draft in enumerate(drafts):
                yield number, draft

        async for lines in self._app.messages.accept_many(stream(), key=f"bulk {drafts[0].to}"):
            for line in lines:
                if line.error is not None:
                    raise line.error
