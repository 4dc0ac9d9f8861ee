"""Workflow settings: the part of [inbound] about squads, requests and admins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ...model import durations
from ...model.errors import Misconfigured
from ..option_parsers import duration, flag, names, one_of, parse_table, whole

ROLES = ("member", "officer", "admin")
RUNNERS = ("auto", "plain", "langgraph")
_names = names(200)


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """The settings of all conversations."""

    enabled: bool = False
    timezone: str = ""  # the engine's
    squads: tuple[str, ...] = ()  # the calendar's
    shifts: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # shift words besides the defaults
    commanders: tuple[str, ...] = ("officer", "admin")  # roles that may act for other squads
    start_threshold: int = 50
    review_threshold: int = 30
    max_questions: int = 2  # about one thing, before a person is asked
    idle_timeout: timedelta = timedelta(hours=24)
    case_reminder_after: timedelta = timedelta(hours=1)
    admins: tuple[str, ...] = ()
    runner: str = "auto"
    replies: Mapping[str, str] = field(default_factory=dict)  # channel by source; default: the same name
    calendar: str = "shifts"  # its name in [inbound.calendar]
    grid: int = 30  # minutes

    def plainly(self) -> Mapping[str, Any]:
        """Return the values that differ from the defaults, as plain values."""
        usual = WorkflowSettings()
        set_ = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != getattr(usual, name)}
        return {
            name: durations.humanize(value) if isinstance(value, timedelta) else value for name, value in set_.items()
        }


def _zone(value: object) -> str:
    try:
        return ZoneInfo(str(value)).key
    except (KeyError, OSError, ValueError):
        raise ValueError("use the name of a time zone, such as America/New_York") from None


def _roles(value: object) -> tuple[str, ...]:
    found = _names(value)
    if unknown := [name for name in found if name not in ROLES]:
        raise ValueError(f"unknown role {unknown[0]!r}; use any of: {', '.join(ROLES)}")
    return found


def _admins(value: object) -> tuple[str, ...]:
    found = _names(value)
    if any(not all(name.partition(":")[::2]) for name in found):
        raise ValueError('use channel:address, such as ["phone:ada"]')
    return found


def _shifts(value: object) -> Mapping[str, tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise ValueError('write [inbound.shifts] and words below it, such as night = "1800-0600"')
    found = {}
    for word, hours in value.items():
        match = re.fullmatch(r"([01]\d|2[0-3])([03]0)-([01]\d|2[0-3])([03]0)", str(hours))
        if not match or not re.fullmatch(r"[a-z]+( [a-z]+)?", word):
            raise ValueError(f'write {word} = "1800-0600": one or two lowercase words, whole or half hours')
        found[word] = (match[1] + match[2], match[3] + match[4])
    return found


def _replies(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value.values()):
        raise ValueError('write [inbound.replies] with lines such as crew = "phone" (source = channel)')
    return dict(value)


OPTIONS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "enabled": (flag, "run workflows for inbound messages; otherwise only store them"),
    "timezone": (_zone, "time zone of the squads; unset: the engine's"),
    "squads": (names(200, least=1), "known squads; unset: the calendar's"),
    "shifts": (_shifts, 'shift words, such as night = "1800-0600"'),
    "commanders": (_roles, "roles that may act for other squads"),
    "start_threshold": (whole(1, 100), "least confidence that starts a workflow"),
    "review_threshold": (whole(0, 100), "confidence from which a message is listed for review"),
    "max_questions": (whole(1, 10), "questions about one thing before a person is called"),
    "idle_timeout": (duration, "idle timeout of a workflow, and of a conversation held by a person"),
    "case_reminder_after": (duration, "how soon a case should be taken"),
    "admins": (_admins, "people who receive notices, as channel:address"),
    "replies": (_replies, "reply channel by source; unset: the source's channel, or the channel of the same name"),
    "runner": (one_of(RUNNERS), "graph runner; auto uses LangGraph if it is installed"),
}
"""The parser and the description of each option."""


def read(given: Mapping[str, Any], **usual: Any) -> WorkflowSettings:
    """Parse the given options; `usual` are defaults from other settings. Raises Misconfigured."""
    values = parse_table("inbound", given, {name: parse for name, (parse, _) in OPTIONS.items()})
    settings = WorkflowSettings(**{**usual, **values})
    if settings.review_threshold > settings.start_threshold:
        raise Misconfigured(
            "inbound.review_threshold is above inbound.start_threshold",
            remedy="set it to start_threshold or lower",
            field="inbound.review_threshold",
        )
    return settings
