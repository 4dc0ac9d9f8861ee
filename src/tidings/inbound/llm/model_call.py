"""Calls to a model and their answers, independent of the endpoint's API. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from .prompt import Prompt, digest

TOOLS: Mapping[str, Mapping[str, Any]] = {
    "read_day": {
        "name": "read_day",
        "description": "The calendar of one day as it was read: for each squad, the hours that have a crew.",
        "parameters": {
            "type": "object",
            "properties": {"date": {"type": "string", "description": "YYYYMMDD"}},
            "required": ["date"],
            "additionalProperties": False,
        },
        "strict": True,
    }
}


class ToolCall(NamedTuple):
    """A tool call of the model. `arguments` is untrusted text."""

    id: str
    name: str
    arguments: str


class Completion(NamedTuple):
    """An answer of the model."""

    content: str | None
    refusal: str | None = None
    finish: str = "stop"
    tools: Sequence[ToolCall] = ()
    tokens_in: int = 0
    tokens_out: int = 0

    def raw(self) -> str:
        """Serialize the answer for the journal."""
        shown = {"content": self.content, "refusal": self.refusal, "finish": self.finish}
        return orjson.dumps({**shown, "tools": [list(tool) for tool in self.tools]}).decode()


def completion_from_journal(raw: str) -> Completion:
    """Parse a journaled answer, without tokens."""
    said = orjson.loads(raw)
    tools = tuple(ToolCall(*tool) for tool in said["tools"])
    return Completion(said["content"], said["refusal"], said["finish"], tools)


class ValidatedAnswer(NamedTuple):
    """A parsed answer, or why it is invalid."""

    parsed: Any = None
    problem: str | None = None


class ModelCall(NamedTuple):
    """One question to a model. Calls with the same `key` are the same question."""

    prompt: Prompt
    model: str
    messages: Sequence[Mapping[str, Any]]
    attempt: int
    judge: Callable[[Completion], ValidatedAnswer]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The model parameters of the prompt."""
        return {"max_tokens": self.prompt.max_tokens, "temperature": self.prompt.temperature}

    def instructed(self, *, structured: bool) -> Sequence[Mapping[str, Any]]:
        """Return the messages, with the schema in the instructions unless the output is structured."""
        if structured:
            return self.messages
        first, *others = self.messages
        return [{**first, "content": f"{first['content']}\n\n{schema_instructions(self.prompt)}"}, *others]

    @property
    def input_hash(self) -> str:
        """The hash of the rendered input."""
        return digest(list(self.messages))

    @property
    def key(self) -> str:
        """The hash of prompt, rendered input, model, settings and attempt."""
        return digest([self.prompt.hash, self.input_hash, self.model, self.settings, self.attempt])


class ModelFailureKind(StrEnum):
    """Why there is no completion."""

    LOST = "lost"  # no response, a truncated one or a server error: retry once
    BUSY = "busy"  # throttled
    UNFIT = "unfit"  # this request is rejected; others may succeed
    WRONG = "wrong"  # key, model or account is rejected, so every request fails


class ModelFailure(NamedTuple):
    """Why a call has no completion."""

    kind: ModelFailureKind
    reason: str
    wait: timedelta | None = None
    param: str = ""  # the parameter that the endpoint rejects
    message: str = ""


def schema_instructions(prompt: Prompt) -> str:
    """Describe the answer's schema, for endpoints without structured output."""
    return f"Answer only with JSON that fits this schema: {orjson.dumps(prompt.schema).decode()}"


def text_or_none(value: object) -> str | None:
    """Return the value if it is a string."""
    return value if isinstance(value, str) else None


def count(value: object) -> int:
    """Return a number of tokens; 0 if the value is not one."""
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
