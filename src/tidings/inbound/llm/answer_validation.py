"""Judging an answer: JSON, the schema, and then the closed lists, which no answer may leave. Pure.

Whether the sender may ask for it is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from ..domain import Extraction, Intent, InterpreterContext, ShiftAction, ShiftRequest, WorkflowRelation
from . import json_schema
from .chat_completions import Completion, ValidatedAnswer
from .prompt import Prompt

MOST_REQUESTS = 50
MOST_WARNINGS = 5
LONGEST_REASON = 500
LONGEST_WARNING = 200

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)


def validate_answer(prompt: Prompt, scene: InterpreterContext, completion: Completion) -> ValidatedAnswer:
    """What an answer says, or why it cannot be used."""
    if is_refused(completion):
        return ValidatedAnswer(problem=f"refused: {printable(completion.refusal or completion.finish)}")
    if completion.tools and prompt.tools:
        return ValidatedAnswer()
    if completion.finish == "length":
        return ValidatedAnswer(problem="the answer is too long and was cut: answer in fewer words")
    try:
        parsed = orjson.loads(_bare(completion.content or ""))
    except orjson.JSONDecodeError as error:
        return ValidatedAnswer(problem=f"the answer is not JSON: {error}")
    wrong = json_schema.schema_violation(parsed, prompt.schema) or next(
        _strays(prompt.name, parsed, scene.squads), None
    )
    return ValidatedAnswer(problem=printable(wrong)) if wrong else ValidatedAnswer(parsed)


def printable(text: str, most: int = LONGEST_REASON) -> str:
    """Words of a model's, fit to be kept and shown: one line, not too long, nothing that cannot be seen."""
    words = " ".join(text.split())[:most]
    return "".join(sign for sign in words if sign.isprintable())


def is_refused(completion: Completion) -> bool:
    """Whether the model will not answer this at all."""
    return bool(completion.refusal) or completion.finish == "content_filter"


def _bare(content: str) -> str:
    """Without the fence in which small models wrap their JSON."""
    fenced = _FENCED.fullmatch(content)
    return fenced[1] if fenced else content


def _strays(name: str, parsed: Mapping[str, Any], squads: Sequence[str]) -> Iterator[str]:
    """What fits the schema and still lies outside of what exists."""
    if name == "intent":
        yield from (f"days has {day!r}, which is no date" for day in parsed["days"] if not _is_date(day))
    if name != "extract":
        return
    if len(parsed["requests"]) > MOST_REQUESTS:
        yield f"there are more than {MOST_REQUESTS} requests"
    for place, request in enumerate(parsed["requests"]):
        at = f"requests[{place}]"
        if request["squad"] is not None and request["squad"] not in squads:
            yield f"{at}.squad must be one of {', '.join(squads)}, or null with a warning"
        if request["date"] is not None and not _is_date(request["date"]):
            yield f"{at}.date is no date"
        for end in ("start", "end"):
            if request[end] is not None and not _is_time(request[end]):
                yield f"{at}.{end} is no time of a day"


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.strptime(f"{text}+0000", "%Y%m%d%z"))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    return int(text[:2]) < 24 and int(text[2:]) < 60


def intent(parsed: Mapping[str, Any], source: str) -> Intent:
    """A judged answer as an intent."""
    days, reason = tuple(parsed["days"]), printable(parsed["reason"])
    return Intent(parsed["is_request"], days, parsed["confidence"], reason, source)


def relation(parsed: Mapping[str, Any], source: str) -> WorkflowRelation:
    """A judged answer as a relation."""
    return WorkflowRelation(
        parsed["related"], float(parsed["confidence"]), printable(parsed["reason"]), source
    )


def extraction(parsed: Mapping[str, Any], source: str) -> Extraction:
    """A judged answer as an extraction."""
    requests = tuple(
        ShiftRequest(
            None if one["action"] is None else ShiftAction(one["action"]),
            one["squad"],
            one["date"],
            one["start"],
            one["end"],
        )
        for one in parsed["requests"]
    )
    warnings = tuple(printable(one, LONGEST_WARNING) for one in parsed["warnings"][:MOST_WARNINGS])
    missing = tuple(dict.fromkeys(parsed["missing"]))
    return Extraction(requests, warnings, missing, printable(parsed["reasoning"]), source)
