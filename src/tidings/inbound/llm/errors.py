"""Why the model gave no answer. The fallback chain continues with the rules, then with a person."""

from __future__ import annotations

from ...model.errors import OperatorError, TemporaryError


class NoModelAnswer(TemporaryError):
    """The model gave no answer."""

    code = "model_unavailable"


class ModelUnavailable(NoModelAnswer):
    """The endpoint is unreachable or rejects the request."""


class ModelThrottled(NoModelAnswer):
    """The endpoint asks us to wait until a time, or the rate limit is exhausted."""

    def __init__(self, problem: str, *, until: int, remedy: str = "") -> None:
        super().__init__(problem, remedy=remedy)
        self.until = until


class ModelBudgetExceeded(NoModelAnswer):
    """The daily budget is spent."""


class ModelRefused(NoModelAnswer):
    """The model refuses to answer."""


class UnusableAnswer(NoModelAnswer):
    """The answer was invalid, also after one correction."""


class AnswerNotRecorded(OperatorError):
    """A replay asked a question that has no recorded answer."""

    code = "not_recorded"
