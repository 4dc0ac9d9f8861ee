"""Request and response bodies of `POST /chat/completions`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dialect import RequestDialect
from .model_call import TOOLS, Completion, ModelCall, ToolCall, count, text_or_none


def chat_request(call: ModelCall, dialect: RequestDialect, *, reasoning_tokens: int) -> dict[str, Any]:
    """Return the request body of a call."""
    prompt = call.prompt
    wanted: dict[str, Any] = {
        "model": call.model,
        "messages": call.instructed(structured=dialect.structured),
        dialect.limit: dialect.max_tokens(prompt.max_tokens, reasoning_tokens),
        "stream": False,
        "response_format": {"type": "json_object"},
    }
    if dialect.structured:
        named = {"name": prompt.name, "strict": True, "schema": prompt.schema}
        wanted["response_format"] = {"type": "json_schema", "json_schema": named}
    if dialect.temperature:
        wanted["temperature"] = prompt.temperature
    if dialect.effort is not None:
        wanted["reasoning_effort"] = dialect.effort
    if prompt.tools:
        wanted["tools"] = [{"type": "function", "function": TOOLS[tool]} for tool in prompt.tools]
    return wanted


def chat_completion(said: Mapping[str, Any]) -> Completion:
    """Parse a response body; raises LookupError, TypeError or AttributeError if it is not a completion."""
    choice = said["choices"][0]
    message, usage = choice["message"], said.get("usage") or {}
    tools = tuple(
        ToolCall(str(one["id"]), str(one["function"]["name"]), str(one["function"]["arguments"]))
        for one in message.get("tool_calls") or ()
    )
    return Completion(
        text_or_none(message.get("content")),
        text_or_none(message.get("refusal")),
        str(choice.get("finish_reason") or "stop"),
        tools,
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
    )
