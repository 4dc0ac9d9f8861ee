"""Renders a prompt deterministically. Pure.

Against prompt injection, user text is quoted as JSON with escaped angle brackets, so that it cannot end its
section.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from ...model.time import moment
from ...wire.placeholders import fill_text
from ..calendar.day_grid import clock
from ..domain import CalendarDay, InterpreterContext, Utterance
from ..language.shift_words import DEFAULTS as SHIFTS
from .prompt import Prompt

LONGEST_TEXT = 4_000  # characters per chat line
LONGEST_THREAD = 60  # the newest lines

Messages = list[dict[str, Any]]


def render_prompt(
    prompt: Prompt, context: InterpreterContext, shifts: Mapping[str, tuple[str, str]] = SHIFTS
) -> Messages:
    """Return the system message (instructions) and the user message (material)."""
    now = moment(context.now).astimezone(ZoneInfo(context.timezone))
    ours = {
        "squads": ", ".join(context.squads),
        "today": f"{now:%A} {now:%Y%m%d}, {now:%H%M}",
        "timezone": context.timezone,
        "shifts": ", ".join(f"{word} {start} to {end}" for word, (start, end) in shifts.items()),
    }
    theirs = {name: _quoted(value) for name, value in _said(context, now).items()}
    return [
        {"role": "system", "content": fill_text(prompt.instructions, ours)},
        {"role": "user", "content": fill_text(prompt.material, {**ours, **theirs})},
    ]


def _said(context: InterpreterContext, now: datetime) -> Mapping[str, Any]:
    return {
        "speaker": {"name": _clip(context.speaker.name), "squad": context.speaker.squad, "role": context.speaker.role},
        "message": _clip(context.text),
        "thread": [_line(line, now) for line in context.thread[-LONGEST_THREAD:]],
        "open": [
            {name: value for name, value in request._asdict().items() if value is not None}
            for request in context.open_requests
        ],
        "asked": context.asked,
        "days": [day.date for day in context.days],
    }


def _line(line: Utterance, now: datetime) -> Mapping[str, Any]:
    return {
        "at": f"{moment(line.at).astimezone(now.tzinfo):%Y%m%d %H%M}",
        "speaker": "the bot" if line.is_ours else _clip(line.speaker),
        "squad": line.squad,
        "text": _clip(line.text),
    }


def _clip(text: str) -> str:
    """Limit the length and replace lone surrogates, which JSON cannot contain."""
    return text[:LONGEST_TEXT].encode(errors="replace").decode()


def shown_day(day: CalendarDay) -> Mapping[str, Any]:
    """Return a calendar day as spans of hours per squad."""
    return {"date": day.date, "crewed": _by_squad(day.crewed), "no_crew": _by_squad(day.no_crew)}


def _by_squad(slots: Mapping[str, frozenset[int]]) -> Mapping[str, list[str]]:
    return {squad: spans(slots[squad]) for squad in sorted(slots)}


def spans(slots: frozenset[int]) -> list[str]:
    """Format half hours of an operational day as spans such as 0600-1800."""
    found: list[list[int]] = []
    for slot in sorted(slots):
        if found and found[-1][1] == slot:
            found[-1][1] = slot + 1
        else:
            found.append([slot, slot + 1])
    return [f"{clock(first)}-{clock(last)}" for first, last in found]


def _quoted(value: object) -> str:
    return orjson.dumps(value).decode().replace("<", "\\u003c").replace(">", "\\u003e")
