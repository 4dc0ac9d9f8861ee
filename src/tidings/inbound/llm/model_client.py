"""The line to a model: the journal first, then budget, turn and call."""

from __future__ import annotations

import asyncio

from ...kernel.clock import Clock
from ...store.port import Store
from .chat_completions import Completion, ModelCall, ModelFailure, ModelFailureKind
from .endpoint import ModelEndpoint
from .errors import ModelBudgetExceeded, ModelUnavailable
from .journal import ModelJournal
from .rate_limiter import ModelRateLimiter, Sleep
from .settings import BILLION, ModelSettings

TRIES = 2  # a call that brought no answer is made once more


class ModelClient:
    """Answers questions from the journal, or by asking the endpoint."""

    def __init__(
        self, settings: ModelSettings, store: Store, clock: Clock, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._endpoint = ModelEndpoint(settings, now=clock.now)
        self._limiter = ModelRateLimiter(store, clock, settings, sleep)
        self.journal = ModelJournal(store, clock)

    async def answer(self, call: ModelCall) -> Completion:
        """What the model says to this, now or before; raises a NoAnswer."""
        earlier = await self.journal.recall(call.key)
        if earlier is not None:
            return earlier
        await self._refuse_over_budget()
        until, lost = self._limiter.patience(), 0
        while True:
            await self._limiter.turn(until)
            found = await self._call(call)
            if isinstance(found, Completion):
                return found
            if found.kind is ModelFailureKind.BUSY and found.wait is not None:
                await self._limiter.park(found.wait, found.reason)
                continue
            if found.kind is ModelFailureKind.UNFIT:
                raise ModelUnavailable(f"the model does not take this question: {found.reason}")
            lost += 1
            if found.kind is ModelFailureKind.WRONG or lost == TRIES:
                await self._limiter.down(found.reason)

    async def close(self) -> None:
        """Let go of connections."""
        await self._endpoint.close()

    async def _call(self, call: ModelCall) -> Completion | ModelFailure:
        id_ = await self.journal.asked(call, self._endpoint.name)
        began = self._clock.monotonic()
        found = await self._endpoint.ask(call)
        ms = round((self._clock.monotonic() - began) * 1000)
        if isinstance(found, ModelFailure):
            await self.journal.failed(id_, found.reason, ms=ms)
        else:
            cost = self._cost(call.model, found)
            await self.journal.answered(id_, call, found, call.judge(found), cost=cost, ms=ms)
        return found

    def _cost(self, model: str, completion: Completion) -> int:
        price = self._settings.prices.get(model)
        return price.cost(completion.tokens_in, completion.tokens_out) if price else 0

    async def _refuse_over_budget(self) -> None:
        budget = self._settings.budget
        if budget is not None and (spent := await self.journal.spent()) >= budget:
            share = f"{spent / BILLION:.4f} of {self._settings.budget_per_day}"
            raise ModelBudgetExceeded(
                f"today's budget for the model is spent ({share})",
                remedy="raise inbound.model.budget_per_day, or wait for the next day (UTC)",
            )
