"""The fallback chain: the model, then the rules, then a person. `source` names who answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..domain import Extraction, Intent, Interpreter, InterpreterContext, WorkflowRelation
from .errors import ModelThrottled, NoModelAnswer
from .model_client import ModelClient

UNKNOWN = "unknown"

Answer = TypeVar("Answer", Intent, WorkflowRelation, Extraction)


class FallbackInterpreter:
    """Fallback chain: asks the model first, then the rules.

    If the model asks us to wait and the rules have no answer either, `ModelThrottled` is raised with its
    `until`, so that the message is processed again then instead of becoming a case.
    """

    name = "fallback"

    def __init__(self, model: Interpreter, rules: Interpreter, *, closing: ModelClient | None = None) -> None:
        self._model = model
        self._rules = rules
        self._closing = closing

    async def intent(self, context: InterpreterContext) -> Intent:
        """Classify whether the message is a request."""
        return await _step_down(
            lambda: self._model.intent(context),
            lambda: self._rules.intent(context),
            lambda found: found.is_request is not None,
            lambda found, why: found._replace(reason=f"{found.reason} ({why})"),
            lambda why: Intent(None, (), 0, why, UNKNOWN),
        )

    async def relate(self, context: InterpreterContext) -> WorkflowRelation:
        """Decide whether the message continues the open workflow."""
        return await _step_down(
            lambda: self._model.relate(context),
            lambda: self._rules.relate(context),
            lambda found: found.related is not None,
            lambda found, why: found._replace(reason=f"{found.reason} ({why})"),
            lambda why: WorkflowRelation(None, 0.0, why, UNKNOWN),
        )

    async def extract(self, context: InterpreterContext) -> Extraction:
        """Extract the requests. Rules that find nothing count as no answer."""
        return await _step_down(
            lambda: self._model.extract(context),
            lambda: self._rules.extract(context),
            lambda found: bool(found.requests or found.missing),
            lambda found, why: found._replace(reasoning=f"{found.reasoning} ({why})"),
            lambda why: Extraction((), (), (), why, UNKNOWN),
        )

    async def close(self) -> None:
        """Close the connections to the model."""
        if self._closing is not None:
            await self._closing.close()


async def _step_down(
    model: Callable[[], Awaitable[Answer]],
    rules: Callable[[], Awaitable[Answer]],
    knows: Callable[[Answer], bool],
    explained: Callable[[Answer, str], Answer],
    unknown: Callable[[str], Answer],
) -> Answer:
    try:
        return await model()
    except NoModelAnswer as error:
        why = error
    found = await rules()
    if knows(found):
        return explained(found, why.problem)
    if isinstance(why, ModelThrottled):
        raise why
    return unknown(f"neither the model nor the rules have an answer: {why.problem}")
