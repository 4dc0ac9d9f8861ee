"""Model families of the simulated language model: which parameters each accepts, as OpenAI's models do.

Names of other models, such as `sandbox-small`, stand for a local server that accepts everything. Errors are
worded as public issue reports quote them (openai/openai-openapi 541, QwenLM/qwen-code 921); shutdown dates
are those in the package `openai`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

DEFAULT_EFFORT = "medium"
REASONING_TOKENS = {"none": 0, "minimal": 64, "low": 256, "medium": 1_024, "high": 4_096, "xhigh": 8_192}
SHUTDOWN_DATES: Mapping[str, str | None] = {
    "sandbox-small": None,
    "sandbox-large": None,
    "gpt-4o-mini": "2027-01-14",
    "gpt-5-mini": "2026-12-11",
    "gpt-6-luna": None,
}


class OpenAIErrorReply(NamedTuple):
    """An error as the provider returns it."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class ModelFamily(NamedTuple):
    """What the models of a family accept."""

    efforts: tuple[str, ...] = ()  # accepted reasoning efforts; none: the family does not reason
    chat_tools: bool = True  # tools in chat/completions while reasoning


_EFFORTS = ("none", "low", "medium", "high", "xhigh")
FAMILIES: Mapping[str, ModelFamily] = {
    "gpt-3.5": ModelFamily(),
    "gpt-4": ModelFamily(),
    "o3": ModelFamily(("low", "medium", "high")),
    "o4": ModelFamily(("low", "medium", "high")),
    "gpt-5": ModelFamily(("minimal", "low", "medium", "high")),
    "gpt-5.": ModelFamily(_EFFORTS, chat_tools=False),
    "gpt-6": ModelFamily(_EFFORTS, chat_tools=False),
}


def family_of(model: str) -> ModelFamily | None:
    """Return the family with the longest prefix of the model's name; None if the model is not OpenAI's."""
    prefix = max((prefix for prefix in FAMILIES if model.startswith(prefix)), key=len, default=None)
    return None if prefix is None else FAMILIES[prefix]


def effort_of(fields: Mapping[str, Any]) -> Any:
    """Return the wanted reasoning effort of a request to either API."""
    reasoning = fields.get("reasoning")
    return reasoning.get("effort") if isinstance(reasoning, dict) else fields.get("reasoning_effort")


def reasoning_tokens(fields: Mapping[str, Any]) -> int:
    """Return how many tokens a model spends on reasoning."""
    family = family_of(str(fields.get("model")))
    return REASONING_TOKENS.get(effort_of(fields) or DEFAULT_EFFORT, 0) if family and family.efforts else 0


def rejection(fields: Mapping[str, Any], *, is_chat: bool) -> OpenAIErrorReply | None:
    """Return why a model rejects the parameters of a request; only the first one, as the provider does."""
    model, effort = str(fields.get("model")), effort_of(fields)
    family = family_of(model)
    if family is None:
        return None
    named = "reasoning_effort" if is_chat else "reasoning.effort"
    if not family.efforts:
        if effort is None:
            return None
        if is_chat:
            return OpenAIErrorReply(400, f"Unrecognized request argument supplied: {named}")
        return _unsupported(named)
    if "max_tokens" in fields:
        return _unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    if fields.get("temperature", 1) != 1:
        if not is_chat:
            return _unsupported("temperature")
        tail = "Only the default (1) value is supported."
        return _unsupported_value("temperature", str(fields["temperature"]), tail)
    if effort is not None and effort not in family.efforts:
        known = ", ".join(f"'{one}'" for one in family.efforts)
        return _unsupported_value(named, f"'{effort}'", f"Supported values are: {known}.")
    if is_chat and fields.get("tools") and not family.chat_tools and effort != "none":
        message = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions."
        how = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        return OpenAIErrorReply(400, f"{message} {how}", param="reasoning_effort")
    return None


def _unsupported(param: str, instead: str = "") -> OpenAIErrorReply:
    message = f"Unsupported parameter: '{param}' is not supported with this model.{instead}"
    return OpenAIErrorReply(400, message, param=param, code="unsupported_parameter")


def _unsupported_value(param: str, value: str, tail: str) -> OpenAIErrorReply:
    message = f"Unsupported value: '{param}' does not support {value} with this model. {tail}"
    return OpenAIErrorReply(400, message, param=param, code="unsupported_value")
