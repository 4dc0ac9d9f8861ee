"""The texts of all replies that the bot sends. Pure; each text has a test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..domain import CalendarCommand, ShiftAction, ShiftRequest
from .settings import WorkflowSettings
from .validation import day_in_words, is_day

LONGEST = 900  # GroupMe accepts up to 1,000 characters

GIVEN_UP = "I'm still not sure what you need, so I have not changed the calendar. Someone will follow up."
CALENDAR_IS_DOWN = "The calendar is not responding, so nothing has been changed. Someone will follow up."
WITHDRAWN = "OK, I have dropped the request."

_ASKS = re.compile(r"; which (?:day|hours|whole or half hours?)\?$")
_VERBS = {ShiftAction.NO_CREW: "no crew", ShiftAction.ADD: "a crew", ShiftAction.REMOVE: "shift removed"}


class CommandResult(NamedTuple):
    """The result of one command."""

    command: CalendarCommand
    is_done: bool
    reason: str | None = None


def command(asked: CalendarCommand) -> str:
    """Describe a command: `no crew for 42, Sat 3 Jan 1800-0600`."""
    return f"{_VERBS[asked.action]} for {asked.squad}, {day_in_words(asked.date)} {asked.start}-{asked.end}"


def question(slot: str, asked: ShiftRequest, policy: WorkflowSettings) -> str:
    """Ask for one missing slot and repeat what is already known."""
    about = _known(asked)
    match slot:
        case "squad":
            return f"Which squad{about}? The squads are {', '.join(policy.squads)}."
        case "date":
            return f"Which day{about}?"
        case "start":
            return f"Which hours{about}? For example, 1800-0600 or 'night'."
        case "end":
            return f"Until when{about}?"
        case _:
            return f"What should I do{about}: mark no crew, add a crew, or remove a shift?"


def read_back(asked: Sequence[CalendarCommand]) -> str:
    """Ask for confirmation of what was understood."""
    if len(asked) == 1:
        return f"I understood: {command(asked[0])}. Is that right? Please answer yes or no."
    lines = [f"- {command(each)}" for each in asked]
    return "\n".join(["I understood:", *lines, "Is that right? Please answer yes or no."])


def _known(asked: ShiftRequest) -> str:
    parts = [_VERBS[asked.action]] if asked.action else []
    parts += [f"for {asked.squad}"] if asked.squad else []
    parts += [f"on {day_in_words(asked.date)}"] if asked.date and is_day(asked.date) else []
    parts += [f"from {asked.start}"] if asked.start else []
    return f" ({' '.join(parts)})" if parts else ""


def remarks(lines: Sequence[str]) -> str:
    """Join warnings and reasons, one sentence each."""
    return " ".join(f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '?', '!')) else '.'}" for line in lines)


def without_question(line: str) -> str:
    """Strip the question from a remark, because the full question follows."""
    return _ASKS.sub("", line)


def reply(*parts: str) -> str:
    """Join the parts into one message, truncated to `LONGEST`."""
    text = "\n".join(part for part in parts if part)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def please_wait(place: int) -> str:
    """Reply to a squad whose previous request is still running; `place` counts from one."""
    behind = "Yours is next." if place == 1 else f"Yours is number {place} in line."
    return f"Please wait: I am still working on your squad's last request. {behind}"


def several_open(asked: str | None) -> str:
    """Warn that the newest of several open requests was chosen."""
    about = f" about the {asked}" if asked else ""
    return f"your squad has several open requests; I took this as an answer to the latest question{about}"


def summary(results: Sequence[CommandResult]) -> str:
    """List each command with its result; partial success is stated explicitly."""
    done = sum(result.is_done for result in results)
    if done == len(results):
        head = "Done:" if done == 1 else f"All {done} done:"
    elif done:
        head = f"Only {done} of {len(results)} done:"
    else:
        head = "Not done:"
    tail = f"Someone will follow up{' on the rest' if done else ''}." if done < len(results) else ""
    return reply(head, *_lines(results), tail)


def _lines(results: Sequence[CommandResult]) -> list[str]:
    return [
        f"{'✓' if result.is_done else '✗'} {command(result.command)}"
        + (f" ({result.reason})" if result.reason and not result.is_done else "")
        for result in results
    ]


def changed_late(name: str, results: Sequence[CommandResult], *, is_deleted: bool) -> str:
    """Reply to an edit or deletion that came after its commands were sent: list what was and was not done."""
    did = "deleted" if is_deleted else "edited"
    head = f"{name}'s message was {did} after I acted on it. Nothing has been undone:"
    return reply(head, *_lines(results), "If you need something else, please send a new message.")


def deleted_answer(name: str, asked: Sequence[ShiftRequest]) -> str:
    """Reply to the deletion of a message that others in the squad have already answered."""
    known = [about for each in asked if (about := _known(each).strip(" ()"))]
    so_far = f" ({'; '.join(known)})" if known else ""
    return (
        f"{name}'s message was deleted, but the request is still open{so_far}. "
        "Say 'never mind' to drop it, or tell me what you need instead."
    )
