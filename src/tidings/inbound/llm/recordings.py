"""Recorded answers from a cassette or the journal, for replays and tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from ...kernel.clock import Clock
from ...model.errors import Invalid
from ...store.port import Store
from .errors import AnswerNotRecorded
from .journal import ModelJournal
from .model_call import Completion, ModelCall, completion_from_journal
from .model_interpreter import ModelInterpreter


class Cassette:
    """A file of recorded answers by the key of their question."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    @classmethod
    def read(cls, path: Path) -> Cassette:
        """Read a file with one JSON object per line, as `tidings models record` writes it."""
        answers: dict[str, str] = {}
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = orjson.loads(line)
                    answers[str(entry["key"])] = str(entry["raw"])
                    completion_from_journal(entry["raw"])
                except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                    problem = f"line {number} of {path} is not a recorded answer ({error})"
                    raise Invalid(problem, remedy="Record it again", field="cassette") from None
        return cls(answers)

    async def answer(self, call: ModelCall) -> Completion:
        """Return the recorded answer; raises AnswerNotRecorded."""
        raw = self._answers.get(call.key)
        if raw is None:
            raise _missing(call)
        return completion_from_journal(raw)


class JournalPlayback:
    """Answers from the journal, without calling a model."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._journal = ModelJournal(store, clock)

    async def answer(self, call: ModelCall) -> Completion:
        """Return the journaled answer; raises AnswerNotRecorded."""
        earlier = await self._journal.recall(call.key)
        if earlier is None:
            raise _missing(call)
        return earlier


class RecordedInterpreter(ModelInterpreter):
    """Replays the answers of a model, from a `Cassette` or a `JournalPlayback`."""

    name = "recorded"


def _missing(call: ModelCall) -> AnswerNotRecorded:
    return AnswerNotRecorded(
        f"no recorded answer of {call.model} to this question"
        f" (prompt {call.prompt.name} version {call.prompt.version}, attempt {call.attempt})",
        remedy="run it once with the model and record it; a changed prompt, model or text is a new question",
    )
