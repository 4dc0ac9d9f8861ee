"""The journal of model calls: recorded before and after each call, and read before a new one.

When a message is handled again after a crash, its questions are answered from the journal. A row that stays
'asked' is a call that was interrupted by a crash; it may have cost money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import orjson

from ...kernel.clock import Clock
from ...model.time import moment
from ...store.port import Row, Step, Store
from .model_call import Completion, ModelCall, ValidatedAnswer, completion_from_journal

PAGE = 500
_NO_ID = (1 << 63) - 1
_trace: ContextVar[str | None] = ContextVar("trace", default=None)


@contextmanager
def trace_calls(trace: str) -> Iterator[None]:
    """Attribute the calls in this context to a message."""
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)


class ModelJournal:
    """The model calls in the database."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def recall(self, key: str) -> Completion | None:
        """Return the journaled answer to a question."""
        rows = await self._store.read("model_recall", key=key)
        return completion_from_journal(rows[0]["raw"]) if rows else None

    async def asked(self, call: ModelCall, endpoint: str) -> int:
        """Record a call before it is made and return its id."""
        fields = {
            "at": self._clock.now(),
            "trace": _trace.get(),
            "key": call.key,
            "attempt": call.attempt,
            "prompt": call.prompt.name,
            "version": call.prompt.version,
            "prompt_hash": call.prompt.hash,
            "input_hash": call.input_hash,
            "endpoint": endpoint,
            "model": call.model,
            "settings": orjson.dumps(call.settings).decode(),
        }
        return int((await self._store.write([Step("model_ask", fields)]))[0][0]["id"])

    async def answered(
        self, id_: int, call: ModelCall, completion: Completion, judged: ValidatedAnswer, *, cost: int, ms: int
    ) -> None:
        """Record the answer and its cost in one transaction."""
        used = {"tokens_in": completion.tokens_in, "tokens_out": completion.tokens_out, "cost": cost}
        parsed = None if judged.parsed is None else orjson.dumps(judged.parsed).decode()
        row = {"id": id_, "raw": completion.raw(), "parsed": parsed, "error": judged.problem, "ms": ms, **used}
        prompt = {"model": call.model, "prompt": call.prompt.name, "version": call.prompt.version}
        await self._store.write(
            [Step("model_answered", row), Step("model_spend", {"day": self.today(), **prompt, **used}, only_if=0)]
        )

    async def failed(self, id_: int, reason: str, *, ms: int) -> None:
        """Record a call without an answer."""
        await self._store.write([Step("model_failed", {"id": id_, "error": reason, "ms": ms})])

    async def spent(self) -> int:
        """Return today's cost in billionths."""
        return int((await self._store.read("model_spent", day=self.today()))[0]["cost"])

    async def days(self, since: str, *, limit: int = PAGE) -> list[Row]:
        """List calls, tokens and cost by day, model, prompt and version, newest day first."""
        return await self._store.read("model_days", since=since, limit=limit)

    async def newest(self, *, before: int | None = None, limit: int = 20) -> list[Row]:
        """List calls, newest first."""
        return await self._store.read("model_calls", before=_NO_ID if before is None else before, limit=limit)

    async def of(self, trace: str) -> list[Row]:
        """List the calls that one message caused, oldest first."""
        return await self._store.read("model_trace", trace=trace, limit=PAGE)

    async def cassette(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield every answered call as a line of a cassette, newest first, for `RecordedInterpreter`."""
        before: int | None = None
        while rows := await self.newest(before=before, limit=PAGE):
            for row in rows:
                if row["state"] == "answered":
                    wanted = ("key", "prompt", "version", "model", "attempt", "raw")
                    yield {name: row[name] for name in wanted}
            before = rows[-1]["id"]

    def today(self) -> str:
        """Return the current day of the budget, in UTC."""
        return f"{moment(self._clock.now()):%Y-%m-%d}"
