"""The model client: answers from the journal, or within budget and rate limit from the endpoint."""

from __future__ import annotations

import asyncio

from ...kernel.clock import Clock
from ...store.port import Step, Store
from .dialect import parse_dialects, serialize_dialects
from .endpoint import ModelEndpoint
from .errors import ModelBudgetExceeded, ModelUnavailable
from .journal import ModelJournal
from .model_call import Completion, ModelCall, ModelFailure, ModelFailureKind
from .rate_limiter import ModelRateLimiter, Sleep
from .settings import BILLION, ModelSettings

TRIES = 2  # a call without an answer is retried once


class ModelClient:
    """Answers questions from the journal or the endpoint."""

    def __init__(self, settings: ModelSettings, store: Store, clock: Clock, *, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._settings = settings
        self._endpoint = ModelEndpoint(settings, now=clock.now)
        self._limiter = ModelRateLimiter(store, clock, settings, sleep)
        self.journal = ModelJournal(store, clock)
        self._store = store
        self._saved: str | None = None  # the dialects in the database

    async def answer(self, call: ModelCall) -> Completion:
        """Return the journaled answer, or call the endpoint; raises NoModelAnswer."""
        earlier = await self.journal.recall(call.key)
        if earlier is not None:
            return earlier
        await self._check_budget()
        until, lost = self._limiter.wait_until(), 0
        while True:
            await self._limiter.turn(until)
            found = await self._call(call)
            if isinstance(found, Completion):
                return found
            if found.kind is ModelFailureKind.BUSY and found.wait is not None:
                await self._limiter.park(found.wait, found.reason)
                continue
            if found.kind is ModelFailureKind.UNFIT:
                raise ModelUnavailable(f"the model rejects this question: {found.reason}")
            lost += 1
            if found.kind is ModelFailureKind.WRONG or lost == TRIES:
                await self._limiter.down(found.reason)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()

    async def _call(self, call: ModelCall) -> Completion | ModelFailure:
        id_ = await self.journal.asked(call, self._endpoint.name)
        await self._load_dialects()
        began = self._clock.monotonic()
        found = await self._endpoint.ask(call)
        ms = round((self._clock.monotonic() - began) * 1000)
        if isinstance(found, ModelFailure):
            await self.journal.failed(id_, found.reason, ms=ms)
        else:
            price = self._settings.prices.get(call.model)
            cost = price.cost(found.tokens_in, found.tokens_out) if price else 0
            await self.journal.answered(id_, call, found, call.judge(found), cost=cost, ms=ms)
        await self._save_dialects()
        return found

    async def _check_budget(self) -> None:
        """Raise ModelBudgetExceeded if today's budget is spent."""
        budget = self._settings.budget
        if budget is not None and (spent := await self.journal.spent()) >= budget:
            share = f"{spent / BILLION:.4f} of {self._settings.budget_per_day}"
            raise ModelBudgetExceeded(
                f"today's budget for the model is spent ({share})",
                remedy="raise inbound.model.budget_per_day, or wait for the next day (UTC)",
            )

    async def _load_dialects(self) -> None:
        """Load the request dialects that this or another process learned, once."""
        if self._saved is None:
            self._saved = (await self._store.read("model_dialects", endpoint=self._endpoint.name))[0]["dialects"]
            self._endpoint.dialects.update(parse_dialects(self._saved))

    async def _save_dialects(self) -> None:
        """Store the dialects if they changed. Of two writers the last wins; the other learns again."""
        current = serialize_dialects(self._endpoint.dialects)
        if current != self._saved:
            await self._store.write([Step("model_learn", {"name": self._endpoint.name, "dialects": current})])
            self._saved = current
