"""Why a model gave no answer. The ladder goes on with the rules, then with a person."""

from __future__ import annotations

from ...model.errors import OperatorError, TemporaryError


class NoModelAnswer(TemporaryError):
    """The model has no answer to this, for now."""

    code = "model_unavailable"


class ModelUnavailable(NoModelAnswer):
    """It cannot be reached, or refuses us."""


class ModelThrottled(NoModelAnswer):
    """It asks us to wait until an instant."""

    def __init__(self, problem: str, *, until: int, remedy: str = "") -> None:
        super().__init__(problem, remedy=remedy)
        self.until = until


class ModelBudgetExceeded(NoModelAnswer):
    """What may be spent today is spent."""


class ModelRefused(NoModelAnswer):
    """It will not answer this."""


class UnusableAnswer(NoModelAnswer):
    """Its answer was wrong, and wrong again after it was told why."""


class AnswerNotRecorded(OperatorError):
    """A replay came to a question that has no recorded answer."""

    code = "not_recorded"
