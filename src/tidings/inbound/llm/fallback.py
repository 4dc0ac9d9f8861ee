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
        unknown = Intent(None, (), 0, "", UNKNOWN)
        return await _ask(
            self._model.intent, self._rules.intent, context, unknown, lambda it: it.is_request is not None
        )

    async def relate(self, context: InterpreterContext) -> WorkflowRelation:
        """Decide whether the message continues the open workflow."""
        unknown = WorkflowRelation(None, 0.0, "", UNKNOWN)
        return await _ask(self._model.relate, self._rules.relate, context, unknown, lambda it: it.related is not None)

    async def extract(self, context: InterpreterContext) -> Extraction:
        """Extract the requests. Rules that find nothing count as no answer."""
        unknown = Extraction((), (), (), "", UNKNOWN)
        return await _ask(
            self._model.extract, self._rules.extract, context, unknown, lambda it: bool(it.requests or it.missing)
        )

    async def close(self) -> None:
        """Close the connections to the model."""
        if self._closing is not None:
            await self._closing.close()


async def _ask(
    model: Callable[[InterpreterContext], Awaitable[Answer]],
    rules: Callable[[InterpreterContext], Awaitable[Answer]],
    context: InterpreterContext,
    unknown: Answer,
    knows: Callable[[Answer], bool],
) -> Answer:
    try:
        return await model(context)
    except NoModelAnswer as error:
        why = error
    found = await rules(context)
    if knows(found):
        said = found.reasoning if isinstance(found, Extraction) else found.reason
        return _explained(found, f"{said} ({why.problem})")
    if isinstance(why, ModelThrottled):
        raise why
    return _explained(unknown, f"neither the model nor the rules have an answer: {why.problem}")


def _explained(found: Answer, why: str) -> Answer:
    return found._replace(reasoning=why) if isinstance(found, Extraction) else found._replace(reason=why)
