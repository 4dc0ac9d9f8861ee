"""Request and response bodies of `POST /responses`. Pure.

Requests are stateless: the provider is asked to store nothing, and every request carries the whole exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .dialect import RequestDialect
from .model_call import TOOLS, Completion, ModelCall, ToolCall, count

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def responses_request(call: ModelCall, dialect: RequestDialect, *, reasoning_tokens: int) -> dict[str, Any]:
    """Return the request body of a call."""
    prompt = call.prompt
    wanted: dict[str, Any] = {
        "model": call.model,
        "input": [item for one in call.instructed(structured=dialect.structured) for item in _items(one)],
        "max_output_tokens": dialect.max_tokens(prompt.max_tokens, reasoning_tokens),
        "text": {"format": {"type": "json_object"}},
        "store": False,
        "stream": False,
    }
    if dialect.structured:
        named = {"type": "json_schema", "name": prompt.name, "strict": True, "schema": prompt.schema}
        wanted["text"] = {"format": named}
    if dialect.temperature:
        wanted["temperature"] = prompt.temperature
    if dialect.effort is not None:
        wanted["reasoning"] = {"effort": dialect.effort}
    if prompt.tools:
        wanted["tools"] = [{"type": "function", **TOOLS[tool]} for tool in prompt.tools]
    return wanted


def responses_completion(said: Mapping[str, Any]) -> Completion:
    """Parse a response body; raises LookupError, TypeError or AttributeError if it is not a completion."""
    if said["status"] not in ("completed", "incomplete"):
        raise LookupError(said["status"])
    output, usage = said["output"], said.get("usage") or {}
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    texts = [str(part["text"]) for part in parts if part["type"] == "output_text"]
    refusals = [str(part["refusal"]) for part in parts if part["type"] == "refusal"]
    calls = [item for item in output if item["type"] == "function_call"]
    tools = tuple(ToolCall(str(one["call_id"]), str(one["name"]), str(one["arguments"])) for one in calls)
    reason = (said.get("incomplete_details") or {}).get("reason")
    finish = "tool_calls" if tools else "stop" if reason is None else _FINISH.get(reason, str(reason))
    tokens = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    return Completion("".join(texts) or None, "".join(refusals) or None, finish, tools, *tokens)


def _items(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a chat message as items of the input."""
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif message["content"]:
        yield {"role": message["role"], "content": message["content"]}
    for one in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": one["id"], **one["function"]}
