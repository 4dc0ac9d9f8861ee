"""Request dialects of language models: what follows from each rejection."""

from __future__ import annotations

import pytest

from tidings.inbound.llm.dialect import RESPONSES, RequestDialect, parse_dialects, serialize_dialects

FIRST = RequestDialect()
NONE = FIRST._replace(effort="none")
LOW = FIRST._replace(effort="low")
ONLY = "This model is only supported in v1/responses and not in v1/chat/completions."
PYDANTIC = "1 validation error for ChatCompletionServerRequest\nreasoning_effort\n Input should be 'low' or 'high'"


@pytest.mark.parametrize(
    ("dialect", "param", "message", "has_tools", "expected"),
    [
        (FIRST, "max_tokens", "", False, FIRST._replace(limit="max_completion_tokens", reasons=True)),
        (FIRST._replace(limit="max_completion_tokens"), "max_tokens", "", False, None),
        (FIRST, "", "'temperature' does not support 0 with this model", False, FIRST._replace(temperature=False)),
        (FIRST, "reasoning_effort", "", True, NONE),
        (FIRST, "reasoning_effort", "", False, None),
        (NONE, "reasoning_effort", "", True, FIRST._replace(api=RESPONSES, reasons=True)),
        (LOW, "reasoning_effort", "", True, LOW._replace(api=RESPONSES, reasons=True)),
        (NONE, "validation_error", PYDANTIC, False, FIRST),
        (LOW._replace(api=RESPONSES), "reasoning.effort", "", True, FIRST._replace(api=RESPONSES)),
        (FIRST, "response_format", "", False, FIRST._replace(structured=False)),
        (FIRST, "model", ONLY, False, FIRST._replace(api=RESPONSES, reasons=True)),
        (FIRST, "messages", "The context is too long", True, None),
        (FIRST, "", "", True, None),
    ],
)
def test_a_rejected_parameter_changes_the_dialect(
    dialect: RequestDialect, param: str, message: str, has_tools: bool, expected: RequestDialect | None
) -> None:
    """One parameter at a time, by the name in the error or by its text; None if nothing known is left (D13)."""
    assert dialect.instead(param, message, has_tools=has_tools) == expected


def test_no_chain_of_rejections_is_endless() -> None:
    """Whichever parameter is rejected next, a dialect comes back after a few steps at most."""
    names = ("max_tokens", "temperature", "reasoning_effort", "response_format", "v1/responses")
    for has_tools in (True, False):
        for name in names:
            seen, dialect = [LOW], LOW
            while (found := dialect.instead(name, "", has_tools=has_tools)) is not None and found not in seen:
                seen.append(found)
                dialect = found
            assert len(seen) <= 4


def test_a_stored_dialect_of_another_version_is_learned_again() -> None:
    """Its fields differ; it is not guessed at."""
    assert parse_dialects(serialize_dialects({"a": NONE})) == {"a": NONE}
    assert parse_dialects('{"a": ["chat", true]}') == {}
