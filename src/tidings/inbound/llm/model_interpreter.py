"""Understanding by a language model: a prompt, an answer, and one correction if it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import orjson

from ..domain import CalendarDay, Extraction, Intent, InterpreterContext, WorkflowRelation
from ..language.shift_words import DEFAULTS as SHIFTS
from . import answer_validation
from .chat_completions import Completion, ModelCall, ToolCall, schema_instructions
from .errors import ModelRefused, UnusableAnswer
from .prompt import Prompt
from .prompt_renderer import Messages, render_prompt, shown_day
from .settings import MOST_ROUNDS, ModelSettings


class AnswerProvider(Protocol):
    """Whoever has a model's answers: the line to one, or a recording."""

    async def answer(self, call: ModelCall) -> Completion:
        """The answer to one question; raises a NoAnswer, or NotRecorded."""


class ModelInterpreter:
    """Asks one question at a time. It reads and answers, and does nothing.

    The same scene gives the same question, to the letter: give the message's own time as `now`, and a repeat
    after a crash is answered from the journal.
    """

    name = "model"

    def __init__(
        self,
        settings: ModelSettings,
        prompts: Mapping[str, Prompt],
        teller: AnswerProvider,
        *,
        shifts: Mapping[str, tuple[str, str]] = SHIFTS,
    ) -> None:
        self._settings = settings
        self._prompts = prompts
        self._teller = teller
        self._shifts = shifts

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Is this a request?"""
        return answer_validation.intent(*await self._ask("intent", scene))

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Does this go on with the open workflow?"""
        return answer_validation.relation(*await self._ask("relate", scene))

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """What exactly is wanted, of the whole thread?"""
        return answer_validation.extraction(*await self._ask("extract", scene))

    async def _ask(self, name: str, scene: InterpreterContext) -> tuple[Any, str]:
        """The answer, as judged, and who gave it. Tools are answered, a wrong answer is corrected once."""
        prompt = self._prompts[name]
        model = self._settings.model(prompt.role)
        messages = render_prompt(prompt, scene, self._shifts)
        judge = partial(answer_validation.validate_answer, prompt, scene)
        is_corrected = False
        for attempt in range(1, MOST_ROUNDS + 1):
            said = await self._teller.answer(ModelCall(prompt, model, tuple(messages), attempt, judge))
            if answer_validation.is_refused(said):
                raise ModelRefused(
                    f"{model} refused to answer: {answer_validation.printable(said.refusal or said.finish)}"
                )
            if said.tools and prompt.tools:
                messages += _served(said, {day.date: day for day in scene.days})
                continue
            parsed, problem = judge(said)
            if problem is None:
                return parsed, f"{self.name}:{model}"
            if is_corrected:
                raise UnusableAnswer(f"{model} answered what cannot be used, twice: {problem}")
            is_corrected = True
            messages += _correction(prompt, said, problem)
        raise UnusableAnswer(f"{model} came to no answer within {MOST_ROUNDS} rounds")


def _correction(prompt: Prompt, said: Completion, problem: str) -> Messages:
    told = f"That answer cannot be used: {problem}. {schema_instructions(prompt)}"
    return [{"role": "assistant", "content": said.content or ""}, {"role": "user", "content": told}]


def _served(said: Completion, days: Mapping[str, CalendarDay]) -> Messages:
    """The model's wish to read, and what it gets to read."""
    wishes = [
        {"id": tool.id, "type": "function", "function": {"name": tool.name, "arguments": tool.arguments}}
        for tool in said.tools
    ]
    answers = [
        {"role": "tool", "tool_call_id": tool.id, "content": _read_day(tool, days)} for tool in said.tools
    ]
    return [{"role": "assistant", "content": said.content, "tool_calls": wishes}, *answers]


def _read_day(tool: ToolCall, days: Mapping[str, CalendarDay]) -> str:
    """A day as it was read before; there is nothing else to be had, and nothing is changed."""
    try:
        date = orjson.loads(tool.arguments)["date"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        date = None
    day = days.get(date) if tool.name == "read_day" and isinstance(date, str) else None
    if day is None:
        return orjson.dumps({"error": f"there is only read_day, for {', '.join(days) or 'no day'}"}).decode()
    return orjson.dumps(shown_day(day)).decode()
