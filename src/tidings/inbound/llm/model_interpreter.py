"""The interpreter that asks a language model, with one correction of an invalid answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import orjson

from ..domain import CalendarDay, Extraction, Intent, InterpreterContext, WorkflowRelation
from ..language.shift_words import DEFAULTS as SHIFTS
from . import answer_validation
from .errors import ModelRefused, UnusableAnswer
from .model_call import Completion, ModelCall, ToolCall, schema_instructions
from .prompt import Prompt
from .prompt_renderer import Messages, render_prompt, shown_day
from .settings import MOST_ROUNDS, ModelSettings


class AnswerProvider(Protocol):
    """Provides a model's answers: a model client or a recording."""

    async def answer(self, call: ModelCall) -> Completion:
        """Return the answer to one question; raises NoModelAnswer or AnswerNotRecorded."""


class ModelInterpreter:
    """Asks a model, without side effects.

    Questions are deterministic: with the message's own time as `now`, a repetition after a crash is answered
    from the journal.
    """

    name = "model"

    def __init__(
        self,
        settings: ModelSettings,
        prompts: Mapping[str, Prompt],
        provider: AnswerProvider,
        *,
        shifts: Mapping[str, tuple[str, str]] = SHIFTS,
    ) -> None:
        self._settings = settings
        self._prompts = prompts
        self._provider = provider
        self._shifts = shifts

    async def intent(self, context: InterpreterContext) -> Intent:
        """Classify whether the message is a request."""
        return answer_validation.intent(*await self._ask("intent", context))

    async def relate(self, context: InterpreterContext) -> WorkflowRelation:
        """Decide whether the message continues the open workflow."""
        return answer_validation.relation(*await self._ask("relate", context))

    async def extract(self, context: InterpreterContext) -> Extraction:
        """Extract the requests of the whole thread."""
        return answer_validation.extraction(*await self._ask("extract", context))

    async def _ask(self, name: str, context: InterpreterContext) -> tuple[Any, str]:
        """Return the validated answer and its source. Serves tool calls; corrects an invalid answer once."""
        prompt = self._prompts[name]
        model = self._settings.model(prompt.role)
        messages = render_prompt(prompt, context, self._shifts)
        judge = partial(answer_validation.validate_answer, prompt, context)
        is_corrected = False
        for attempt in range(1, MOST_ROUNDS + 1):
            said = await self._provider.answer(ModelCall(prompt, model, tuple(messages), attempt, judge))
            if answer_validation.is_refused(said):
                raise ModelRefused(
                    f"{model} refused to answer: {answer_validation.printable(said.refusal or said.finish)}"
                )
            if said.tools and prompt.tools:
                messages += _served(said, {day.date: day for day in context.days})
                continue
            parsed, problem = judge(said)
            if problem is None:
                return parsed, f"{self.name}:{model}"
            if is_corrected:
                raise UnusableAnswer(f"{model} gave an invalid answer twice: {problem}")
            is_corrected = True
            messages += _correction(prompt, said, problem)
        raise UnusableAnswer(f"{model} gave no answer within {MOST_ROUNDS} rounds")


def _correction(prompt: Prompt, said: Completion, problem: str) -> Messages:
    request = f"That answer cannot be used: {problem}. {schema_instructions(prompt)}"
    return [{"role": "assistant", "content": said.content or ""}, {"role": "user", "content": request}]


def _served(said: Completion, days: Mapping[str, CalendarDay]) -> Messages:
    """Return the model's tool calls and their results."""
    calls = [
        {"id": tool.id, "type": "function", "function": {"name": tool.name, "arguments": tool.arguments}}
        for tool in said.tools
    ]
    answers = [{"role": "tool", "tool_call_id": tool.id, "content": _read_day(tool, days)} for tool in said.tools]
    return [{"role": "assistant", "content": said.content, "tool_calls": calls}, *answers]


def _read_day(tool: ToolCall, days: Mapping[str, CalendarDay]) -> str:
    """Return a calendar day of the context, the only data that tools can read."""
    try:
        date = orjson.loads(tool.arguments)["date"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        date = None
    day = days.get(date) if tool.name == "read_day" and isinstance(date, str) else None
    if day is None:
        return orjson.dumps({"error": f"there is only read_day, for {', '.join(days) or 'no day'}"}).decode()
    return orjson.dumps(shown_day(day)).decode()
