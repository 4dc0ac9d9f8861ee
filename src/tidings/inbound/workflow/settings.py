"""Settings of workflows: the part of [inbound] that says what a squad may ask for and whom to call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ...model import durations
from ...model.errors import Misconfigured
from .langgraph import CHOICES
from .validation import WorkflowPolicy

ROLES = ("member", "officer", "admin")


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """What holds for all conversations."""

    enabled: bool = False
    timezone: str = ""  # the engine's
    squads: tuple[str, ...] = ()  # the calendar's
    shifts: Mapping[str, tuple[str, str]] = field(
        default_factory=dict
    )  # words for hours, besides the usual ones
    commanders: tuple[str, ...] = ("officer", "admin")
    start_at: int = 50
    review_threshold: int = 30
    max_questions: int = 2
    idle: timedelta = timedelta(hours=24)
    case_reminder_after: timedelta = timedelta(hours=1)
    admins: tuple[str, ...] = ()
    runner: str = "auto"
    replies: Mapping[str, str] = field(default_factory=dict)  # channel by source; none: of the same name
    calendar: str = "shifts"  # by its name in [inbound.calendar]
    grid: int = 30

    @property
    def house(self) -> WorkflowPolicy:
        """The rules of the house."""
        return WorkflowPolicy(self.squads, self.timezone, self.commanders, self.max_questions, self.grid)

    def plainly(self) -> Mapping[str, Any]:
        """What was set, in plain values."""
        usual = WorkflowSettings()
        set_ = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != getattr(usual, name)}
        return {
            name: durations.humanize(value) if isinstance(value, timedelta) else value
            for name, value in set_.items()
        }


def _flag(value: object) -> bool:
    said = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise ValueError("use true or false")
    return said


def _zone(value: object) -> str:
    try:
        return ZoneInfo(str(value)).key
    except (KeyError, OSError, ValueError):
        raise ValueError("use the name of a time zone, such as America/New_York") from None


def _names(value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ValueError('use a list such as ["34", "35"]')
    names = tuple(dict.fromkeys(str(name).strip() for name in given))
    if not all(0 < len(name) <= 200 and name.isprintable() for name in names):
        raise ValueError('use a list of names, such as ["34", "35"]')
    return names


def _squads(value: object) -> tuple[str, ...]:
    if not (names := _names(value)):
        raise ValueError('name at least one squad, such as ["34"]')
    return names


def _roles(value: object) -> tuple[str, ...]:
    names = _names(value)
    if unknown := [name for name in names if name not in ROLES]:
        raise ValueError(f"there is no role {unknown[0]!r}; use some of: {', '.join(ROLES)}")
    return names


def _admins(value: object) -> tuple[str, ...]:
    names = _names(value)
    if any(not all(name.partition(":")[::2]) for name in names):
        raise ValueError('use channel:address, such as ["phone:ada"]')
    return names


def _shifts(value: object) -> Mapping[str, tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise ValueError('write [inbound.shifts] and words below it, such as night = "1800-0600"')
    found = {}
    for word, hours in value.items():
        match = re.fullmatch(r"([01]\d|2[0-3])([03]0)-([01]\d|2[0-3])([03]0)", str(hours))
        if not match or not re.fullmatch(r"[a-z]+( [a-z]+)?", word):
            raise ValueError(f'write {word} = "1800-0600": one or two small words, whole or half hours')
        found[word] = (match[1] + match[2], match[3] + match[4])
    return found


def _replies(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value.values()):
        raise ValueError('write [inbound.replies] and below it crew = "phone": a source, and a channel')
    return dict(value)


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if (
            isinstance(value, bool)
            or not re.fullmatch(r"\d{1,4}", str(value))
            or not least <= int(str(value)) <= most
        ):
            raise ValueError(f"use a whole number from {least} to {most}")
        return int(str(value))

    return read


def _length(value: Any) -> timedelta:
    length = durations.parse(value)
    if not length:
        raise ValueError("use a duration such as 30m or 24h")
    return length


def _choice(value: object) -> str:
    if value not in CHOICES:
        raise ValueError(f"use one of: {', '.join(CHOICES)}")
    return str(value)


OPTIONS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "enabled": (_flag, "work through what comes in; otherwise it is only kept"),
    "timezone": (_zone, "time zone of the squads; unset: the engine's"),
    "squads": (_squads, "the squads that may be named; unset: the calendar's"),
    "shifts": (_shifts, 'words for hours, such as night = "1800-0600"'),
    "commanders": (_roles, "roles that may act for other squads"),
    "start_at": (_whole(1, 100), "confidence from which a request starts a workflow"),
    "review_threshold": (_whole(0, 100), "confidence from which a message is listed for review"),
    "max_questions": (_whole(1, 10), "questions about one thing before a person is called"),
    "idle": (_length, "how long a workflow may wait, and a person hold a conversation"),
    "case_reminder_after": (_length, "how soon a case should be taken"),
    "admins": (_admins, "whom to call, as channel:address"),
    "replies": (_replies, "the channel on which a source is answered; unset: the one of the same name"),
    "runner": (_choice, "who runs the graph: auto takes LangGraph where it is installed"),
}
"""How each option is read, and what it is for."""


def read(given: Mapping[str, Any], **usual: Any) -> WorkflowSettings:
    """Those of the options that were given; `usual` are defaults that other settings say."""
    values: dict[str, Any] = {}
    for name, raw in given.items():
        try:
            values[name] = OPTIONS[name][0](raw)
        except ValueError as error:
            raise Misconfigured(
                f"inbound.{name} cannot be used", remedy=str(error), field=f"inbound.{name}"
            ) from None
    settings = WorkflowSettings(**{**usual, **values})
    if settings.review_threshold > settings.start_at:
        raise Misconfigured(
            "inbound.review_threshold is above inbound.start_at",
            remedy="what starts a workflow needs no review",
            field="inbound.review_threshold",
        )
    return settings
