"""Validates an answer: JSON, the schema, then closed lists of squads, dates and times. Pure.

This limits prompt injection: an injected answer can only contain values that exist. Authorization of the
sender is checked in `workflow.validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from ..domain import Extraction, Intent, InterpreterContext, ShiftAction, ShiftRequest, WorkflowRelation
from . import json_schema
from .model_call import Completion, ValidatedAnswer
from .prompt import Prompt

MOST_REQUESTS = 50
MOST_WARNINGS = 5
LONGEST_REASON = 500
LONGEST_WARNING = 200

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)


def validate_answer(prompt: Prompt, context: InterpreterContext, completion: Completion) -> ValidatedAnswer:
    """Return the parsed answer, or why it is invalid."""
    if is_refused(completion):
        return ValidatedAnswer(problem=f"refused: {printable(completion.refusal or completion.finish)}")
    if completion.tools and prompt.tools:
        return ValidatedAnswer()
    if completion.finish == "length":
        return ValidatedAnswer(problem="the answer was too long and was cut off: answer in fewer words")
    try:
        parsed = orjson.loads(_bare(completion.content or ""))
    except orjson.JSONDecodeError as error:
        return ValidatedAnswer(problem=f"the answer is not JSON: {error}")
    wrong = json_schema.schema_violation(parsed, prompt.schema) or next(
        _strays(prompt.name, parsed, context.squads), None
    )
    return ValidatedAnswer(problem=printable(wrong)) if wrong else ValidatedAnswer(parsed)


def printable(text: str, most: int = LONGEST_REASON) -> str:
    """Sanitize model text for storage and display: one line, limited length, printable characters."""
    words = " ".join(text.split())[:most]
    return "".join(sign for sign in words if sign.isprintable())


def is_refused(completion: Completion) -> bool:
    """Return whether the model refused to answer."""
    return bool(completion.refusal) or completion.finish == "content_filter"


def _bare(content: str) -> str:
    """Strip the code fence in which small models wrap their JSON."""
    fenced = _FENCED.fullmatch(content)
    return fenced[1] if fenced else content


def _strays(name: str, parsed: Mapping[str, Any], squads: Sequence[str]) -> Iterator[str]:
    """Yield the values that fit the schema but do not exist."""
    if name == "intent":
        yield from (f"days has {day!r}, which is not a date" for day in parsed["days"] if not _is_date(day))
    if name != "extract":
        return
    if len(parsed["requests"]) > MOST_REQUESTS:
        yield f"there are more than {MOST_REQUESTS} requests"
    for place, request in enumerate(parsed["requests"]):
        at = f"requests[{place}]"
        if request["squad"] is not None and request["squad"] not in squads:
            yield f"{at}.squad must be one of {', '.join(squads)}, or null with a warning"
        if request["date"] is not None and not _is_date(request["date"]):
            yield f"{at}.date is not a date"
        for end in ("start", "end"):
            if request[end] is not None and not (int(request[end][:2]) < 24 and int(request[end][2:]) < 60):
                yield f"{at}.{end} is not a time of day"


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.strptime(f"{text}+0000", "%Y%m%d%z"))
    except ValueError:
        return False


def intent(parsed: Mapping[str, Any], source: str) -> Intent:
    """Convert a validated answer to an intent."""
    days, reason = tuple(parsed["days"]), printable(parsed["reason"])
    return Intent(parsed["is_request"], days, parsed["confidence"], reason, source)


def relation(parsed: Mapping[str, Any], source: str) -> WorkflowRelation:
    """Convert a validated answer to a relation."""
    return WorkflowRelation(parsed["related"], float(parsed["confidence"]), printable(parsed["reason"]), source)


def extraction(parsed: Mapping[str, Any], source: str) -> Extraction:
    """Convert a validated answer to an extraction."""
    requests = tuple(
        ShiftRequest(ShiftAction(action) if action else None, *(one[name] for name in ShiftRequest._fields[1:]))
        for one in parsed["requests"]
        for action in [one["action"]]
    )
    warnings = tuple(printable(one, LONGEST_WARNING) for one in parsed["warnings"][:MOST_WARNINGS])
    missing = tuple(dict.fromkeys(parsed["missing"]))
    return Extraction(requests, warnings, missing, printable(parsed["reasoning"]), source)
