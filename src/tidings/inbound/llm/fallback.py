"""The ladder: the model, then the rules, then a person. Never a guess; `source` says who answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from ..domain import Extraction, Intent, Interpreter, InterpreterContext, WorkflowRelation
from .errors import ModelThrottled, NoModelAnswer

UNKNOWN = "unknown"

Answer = TypeVar("Answer", Intent, WorkflowRelation, Extraction)


class Closable(Protocol):
    """What holds connections."""

    async def close(self) -> None:
        """Let go of them."""


class FallbackInterpreter:
    """Fallback chain: asks the model first, then the rules.

    If the model asks us to wait and the rules have no answer either, `ModelThrottled` is raised with its
    `until`, so that the message is processed again then instead of becoming a case.
    """

    name = "ladder"

    def __init__(self, model: Interpreter, rules: Interpreter, *, closing: Closable | None = None) -> None:
        self._model = model
        self._rules = rules
        self._closing = closing

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Is this a request?"""

        def unknown(why: str) -> Intent:
            return Intent(None, (), 0, why, UNKNOWN)

        return await _step_down(
            lambda: self._model.intent(scene),
            lambda: self._rules.intent(scene),
            lambda found: found.is_request is not None,
            lambda found, why: found._replace(reason=f"{found.reason} ({why})"),
            unknown,
        )

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Does this go on with the open workflow?"""

        def unknown(why: str) -> WorkflowRelation:
            return WorkflowRelation(None, 0.0, why, UNKNOWN)

        return await _step_down(
            lambda: self._model.relate(scene),
            lambda: self._rules.relate(scene),
            lambda found: found.related is not None,
            lambda found, why: found._replace(reason=f"{found.reason} ({why})"),
            unknown,
        )

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """What exactly is wanted? Rules that find nothing at all do not know."""

        def unknown(why: str) -> Extraction:
            return Extraction((), (), (), why, UNKNOWN)

        return await _step_down(
            lambda: self._model.extract(scene),
            lambda: self._rules.extract(scene),
            lambda found: bool(found.requests or found.missing),
            lambda found, why: found._replace(reasoning=f"{found.reasoning} ({why})"),
            unknown,
        )

    async def close(self) -> None:
        """Let go of the model's connections."""
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
    return unknown(f"neither the model nor the rules know: {why.problem}")
