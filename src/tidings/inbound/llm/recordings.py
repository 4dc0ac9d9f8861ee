"""Recorded answers: the same understanding without a model; a question that has none is an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from ...kernel.clock import Clock
from ...model.errors import Invalid
from ...store.port import Store
from ..language.shift_words import DEFAULTS as SHIFTS
from .chat_completions import Completion, ModelCall, completion_from_journal
from .errors import AnswerNotRecorded
from .journal import ModelJournal
from .model_interpreter import ModelInterpreter
from .prompt import Prompt
from .settings import ModelSettings


class Cassette:
    """Answers by the key of their question."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    @classmethod
    def read(cls, path: Path) -> Cassette:
        """A file with one JSON object per line, as `tidings models record` writes it."""
        answers: dict[str, str] = {}
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = orjson.loads(line)
                    answers[str(entry["key"])] = str(entry["raw"])
                    completion_from_journal(entry["raw"])
                except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                    problem = f"line {number} of {path} is no recorded answer ({error})"
                    raise Invalid(problem, remedy="Record it again", field="cassette") from None
        return cls(answers)

    async def answer(self, call: ModelCall) -> Completion:
        """The recorded answer."""
        raw = self._answers.get(call.key)
        if raw is None:
            raise _missing(call)
        return completion_from_journal(raw)


class JournalPlayback:
    """Answers out of the journal; nothing is called."""

    def __init__(self, journal: ModelJournal) -> None:
        self._journal = journal

    async def answer(self, call: ModelCall) -> Completion:
        """What was answered then."""
        earlier = await self._journal.recall(call.key)
        if earlier is None:
            raise _missing(call)
        return earlier


class RecordedInterpreter(ModelInterpreter):
    """A model's understanding, replayed."""

    name = "recorded"

    @classmethod
    def from_file(
        cls,
        settings: ModelSettings,
        prompts: Mapping[str, Prompt],
        path: Path,
        *,
        shifts: Mapping[str, tuple[str, str]] = SHIFTS,
    ) -> RecordedInterpreter:
        """From a cassette."""
        return cls(settings, prompts, Cassette.read(path), shifts=shifts)

    @classmethod
    def from_journal(
        cls,
        settings: ModelSettings,
        prompts: Mapping[str, Prompt],
        store: Store,
        clock: Clock,
        *,
        shifts: Mapping[str, tuple[str, str]] = SHIFTS,
    ) -> RecordedInterpreter:
        """From the calls in the database."""
        return cls(settings, prompts, JournalPlayback(ModelJournal(store, clock)), shifts=shifts)


def _missing(call: ModelCall) -> AnswerNotRecorded:
    return AnswerNotRecorded(
        f"there is no recorded answer of {call.model} to this question"
        f" (prompt {call.prompt.name} version {call.prompt.version}, attempt {call.attempt})",
        remedy="ask the model once and record it; a changed prompt, model or message is another question",
    )
