"""Requests and responses of an OpenAI-compatible endpoint, with Retry-After. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from ...model import durations
from ...wire.http_client import MAX_SHOWN, HttpResponse
from ...wire.retry_after import MAX_RETRY_AFTER, retry_after
from .prompt import Prompt, digest

DEFAULT_RETRY_AFTER = timedelta(seconds=20)  # for a 429 without Retry-After

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

    @property
    def input_hash(self) -> str:
        """The hash of the rendered input."""
        return digest(list(self.messages))

    @property
    def key(self) -> str:
        """The hash of prompt, rendered input, model, settings and attempt."""
        return digest([self.prompt.hash, self.input_hash, self.model, self.settings, self.attempt])


class RequestDialect(NamedTuple):
    """The dialect that an endpoint accepts; found by trying."""

    structured: bool = True
    limit: str = "max_tokens"


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
    instead: RequestDialect | None = None  # the dialect to try next


def request_body(call: ModelCall, shape: RequestDialect) -> bytes:
    """Serialize a call in the endpoint's dialect."""
    messages = list(call.messages)
    if not shape.structured:
        content = f"{messages[0]['content']}\n\n{schema_instructions(call.prompt)}"
        messages[0] = {**messages[0], "content": content}
    wanted: dict[str, Any] = {
        "model": call.model,
        "messages": messages,
        "temperature": call.prompt.temperature,
        shape.limit: call.prompt.max_tokens,
        "stream": False,
        "response_format": {"type": "json_object"},
    }
    if shape.structured:
        named = {"name": call.prompt.name, "strict": True, "schema": call.prompt.schema}
        wanted["response_format"] = {"type": "json_schema", "json_schema": named}
    if call.prompt.tools:
        wanted["tools"] = [{"type": "function", "function": TOOLS[tool]} for tool in call.prompt.tools]
    return orjson.dumps(wanted)


def schema_instructions(prompt: Prompt) -> str:
    """Describe the answer's schema, for endpoints without structured output."""
    return f"Answer only with JSON that fits this schema: {orjson.dumps(prompt.schema).decode()}"


def read_response(
    answer: HttpResponse, shape: RequestDialect, *, now: int, hide: str = ""
) -> Completion | ModelFailure:
    """Parse any response. `hide` is the API key, which is redacted from errors."""
    try:
        said = orjson.loads(answer.body_prefix)
    except orjson.JSONDecodeError:
        said = None
    if answer.status == 200:
        return _completion(said) or ModelFailure(ModelFailureKind.LOST, "the response is truncated or not a completion")
    error = _Error.of(said)
    words = _shown(f"HTTP {answer.status}: {error.message or answer.shown()}", hide)
    wait = _wait(answer, now)
    match answer.status:
        case 429 if error.code != "insufficient_quota" and error.type != "insufficient_quota":
            return ModelFailure(ModelFailureKind.BUSY, words, wait or DEFAULT_RETRY_AFTER)
        case 503 if wait is not None:
            return ModelFailure(ModelFailureKind.BUSY, words, wait)
        case 408 | 409 | 425:
            return ModelFailure(ModelFailureKind.LOST, words)
        case 400 | 413 | 422:
            return ModelFailure(ModelFailureKind.UNFIT, words, instead=_other_shape(shape, error))
        case status if status >= 500:
            return ModelFailure(ModelFailureKind.LOST, words)
    return ModelFailure(ModelFailureKind.WRONG, words)


class _Error(NamedTuple):
    message: str = ""
    type: str = ""
    code: str = ""
    param: str = ""

    @classmethod
    def of(cls, said: object) -> _Error:
        """Parse an error given as an object or a string; codes may be strings or numbers."""
        error = said.get("error") if isinstance(said, dict) else None
        if isinstance(error, str):
            return cls(error)
        if not isinstance(error, dict):
            return cls()
        return cls(*(str(error.get(name) or "") for name in cls._fields))


def _completion(said: object) -> Completion | None:
    try:
        assert isinstance(said, dict)
        choice = said["choices"][0]
        message, usage = choice["message"], said.get("usage") or {}
        tools = tuple(
            ToolCall(str(one["id"]), str(one["function"]["name"]), str(one["function"]["arguments"]))
            for one in message.get("tool_calls") or ()
        )
        return Completion(
            _text(message.get("content")),
            _text(message.get("refusal")),
            str(choice.get("finish_reason") or "stop"),
            tools,
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
        )
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0


def _other_shape(shape: RequestDialect, error: _Error) -> RequestDialect | None:
    about = f"{error.param} {error.message}"
    if shape.limit == "max_tokens" and "max_tokens" in about:
        return shape._replace(limit="max_completion_tokens")
    if shape.structured and re.search(r"response_format|json_schema|structured", about):
        return shape._replace(structured=False)
    return None


def _wait(answer: HttpResponse, now: int) -> timedelta | None:
    exact = answer.header("retry-after-ms") or ""
    if exact.isascii() and exact.isdigit() and len(exact) < 12:
        return min(timedelta(milliseconds=int(exact)), MAX_RETRY_AFTER)
    wait = retry_after(answer.header("retry-after"), now=now)
    if wait is not None:
        return wait
    resets = [answer.header(f"x-ratelimit-reset-{of}") for of in ("requests", "tokens")]
    return max((reset for value in resets if (reset := _duration(value)) is not None), default=None)


def _duration(value: str | None) -> timedelta | None:
    try:
        return None if value is None else min(durations.parse(value), MAX_RETRY_AFTER)
    except ValueError:
        return None


def _shown(text: str, hide: str) -> str:
    text = text.replace(hide, "[hidden]") if hide else text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text.strip()[:MAX_SHOWN])
