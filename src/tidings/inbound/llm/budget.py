"""The cost of an answer and the daily spending limit."""

from __future__ import annotations

from .errors import ModelBudgetExceeded
from .journal import ModelJournal
from .model_call import Completion
from .settings import BILLION, ModelSettings


class ModelBudget:
    """The daily budget of the model, by the costs in the journal."""

    def __init__(self, settings: ModelSettings, journal: ModelJournal) -> None:
        self._settings = settings
        self._journal = journal

    def cost(self, model: str, completion: Completion) -> int:
        """Return the cost of an answer in whole billionths; 0 without a price."""
        price = self._settings.prices.get(model)
        return price.cost(completion.tokens_in, completion.tokens_out) if price else 0

    async def check(self) -> None:
        """Raise ModelBudgetExceeded if today's budget is spent."""
        budget = self._settings.budget
        if budget is not None and (spent := await self._journal.spent()) >= budget:
            share = f"{spent / BILLION:.4f} of {self._settings.budget_per_day}"
            raise ModelBudgetExceeded(
                f"today's budget for the model is spent ({share})",
                remedy="raise inbound.model.budget_per_day, or wait for the next day (UTC)",
            )
