"""Request dialects: which API, parameters and values a model accepts, learned from its rejections. Pure.

An endpoint names one parameter per rejection, so a dialect is changed one parameter at a time. The names
and limits of models are not listed here: providers change them more often than this code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

CHAT = "chat"
RESPONSES = "responses"


class RequestDialect(NamedTuple):
    """How requests to a model are written."""

    api: str = CHAT
    structured: bool = True  # structured output; otherwise plain JSON
    limit: str = "max_tokens"  # of chat/completions
    temperature: bool = True  # whether it is sent
    effort: str | None = None  # reasoning effort; None: not sent
    reasons: bool = False  # whether reasoning tokens count against the limit

    def max_tokens(self, answer: int, reasoning: int) -> int:
        """Return the limit for an answer of `answer` tokens, with room for reasoning if the model reasons."""
        return answer + reasoning if self.reasons and self.effort != "none" else answer

    def instead(self, param: str, message: str, *, has_tools: bool) -> RequestDialect | None:
        """Return the dialect to try after a rejection; None if it is not about a known parameter."""
        for about in (param, message):
            for name, change in self._changes(has_tools=has_tools).items():
                if change and re.search(name, about):
                    return self._replace(**change)
        return None

    def learned(self, finish: str, content: str | None) -> RequestDialect:
        """Return the dialect for the next request, after an answer: reasoning may have used up the limit."""
        return self._replace(reasons=self.reasons or (finish == "length" and not content))

    def _changes(self, *, has_tools: bool) -> Mapping[str, Mapping[str, Any]]:
        """The change that follows each rejected parameter; empty if there is none left."""
        is_chat = self.api == CHAT
        move = {"api": RESPONSES, "reasons": True} if is_chat else {}
        if self.effort is None:
            reasoning: Mapping[str, Any] = {"effort": "none"} if is_chat and has_tools else {}
        elif is_chat and has_tools:
            reasoning = {**move, "effort": None if self.effort == "none" else self.effort}
        else:
            reasoning = {"effort": None}
        is_old_limit = is_chat and self.limit == "max_tokens"
        return {
            "max_tokens": {"limit": "max_completion_tokens", "reasons": True} if is_old_limit else {},
            "temperature": {"temperature": False} if self.temperature else {},
            "reasoning": reasoning,
            r"response_format|json_schema|structured|text\.format": {"structured": False} if self.structured else {},
            r"v1/responses": move,
        }


def serialize_dialects(dialects: Mapping[str, RequestDialect]) -> str:
    """Serialize dialects for the database."""
    return orjson.dumps({key: list(one) for key, one in dialects.items()}).decode()


def parse_dialects(kept: str) -> dict[str, RequestDialect]:
    """Parse dialects from the database, without those of a version with other fields."""
    size = len(RequestDialect._fields)
    return {key: RequestDialect(*one) for key, one in orjson.loads(kept).items() if len(one) == size}
