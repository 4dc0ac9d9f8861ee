"""What the bot says, in one place. Pure; each sentence has a test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..domain import CalendarCommand, ShiftAction, ShiftRequest
from .validation import WorkflowPolicy, day_in_words, is_day

LONGEST = 900  # a chat message of GroupMe takes a thousand characters

_ASKS = re.compile(r"; which (?:day|hours|whole or half hours?)\?$")
_VERBS = {ShiftAction.NO_CREW: "no crew", ShiftAction.ADD: "a crew", ShiftAction.REMOVE: "taken out"}


class CommandResult(NamedTuple):
    """What became of one command."""

    command: CalendarCommand
    is_done: bool
    reason: str | None = None


def command(asked: CalendarCommand) -> str:
    """One command in words: no crew for 42, Sat 3 Jan 1800-0600."""
    return f"{_VERBS[asked.action]} for {asked.squad}, {day_in_words(asked.date)} {asked.start}-{asked.end}"


def question(slot: str, asked: ShiftRequest, house: WorkflowPolicy) -> str:
    """The question for one slot, with what is known already."""
    about = _known(asked)
    match slot:
        case "squad":
            return f"Which squad{about}? I know {', '.join(house.squads)}."
        case "date":
            return f"Which day{about}?"
        case "start":
            return f"From when to when{about}? For example 1800-0600, or 'night'."
        case "end":
            return f"Until when{about}?"
        case _:
            return f"What shall I do{about}: no crew, add a crew, or take one out?"


def read_back(asked: Sequence[CalendarCommand]) -> str:
    """What was understood, before it is done."""
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
    """Warnings and reasons, one sentence each."""
    return " ".join(
        f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '?', '!')) else '.'}" for line in lines
    )


def without_question(line: str) -> str:
    """A remark that ends in a question, before the same one is asked in full."""
    return _ASKS.sub("", line)


def reply(*parts: str) -> str:
    """One message of several parts, not longer than a chat takes."""
    text = "\n".join(part for part in parts if part)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def please_wait(place: int) -> str:
    """To a busy squad; `place` counts from one."""
    behind = "Yours is next." if place == 1 else f"Yours is number {place} in line."
    return f"Please wait: I am still working on your squad's last request. {behind}"


def given_up() -> str:
    """After the last question."""
    return "I still do not understand it well enough to change the calendar. A person will look at it."


def calendar_is_down() -> str:
    """When the days cannot be read."""
    return "The calendar does not answer, so I have changed nothing. A person has been told."


def withdrawn() -> str:
    """The squad does not want it any more."""
    return "All right, I have dropped it."


def several_open(asked: str | None) -> str:
    """A warning where the newest was taken."""
    about = f" about the {asked}" if asked else ""
    return f"several requests of your squad are open; I took this as an answer to the newest question{about}"


def summary(results: Sequence[CommandResult]) -> str:
    """Each command with its result; partial success is said as such."""
    done = sum(result.is_done for result in results)
    if done == len(results):
        head = "Done:" if done == 1 else f"All {done} done:"
    elif done:
        head = f"Only {done} of {len(results)} done:"
    else:
        head = "Not done:"
    tail = "A person looks after what is not done." if done < len(results) else ""
    return reply(head, *_lines(results), tail)


def _lines(results: Sequence[CommandResult]) -> list[str]:
    return [
        f"{'✓' if result.is_done else '✗'} {command(result.command)}"
        + (f" ({result.reason})" if result.reason and not result.is_done else "")
        for result in results
    ]


def changed_late(name: str, results: Sequence[CommandResult], *, is_deleted: bool) -> str:
    """A message was edited or deleted when the calendar had been asked already: what was and was not done."""
    did = "deleted" if is_deleted else "changed"
    head = f"{name}'s message was {did} after I had acted on it. That undoes nothing; it stays like this:"
    return reply(head, *_lines(results), "If it should be otherwise, please say so in a new message.")


def deleted_answer(name: str, asked: Sequence[ShiftRequest]) -> str:
    """A message was deleted that others of the squad have built upon."""
    known = [about for each in asked if (about := _known(each).strip(" ()"))]
    so_far = f" ({'; '.join(known)})" if known else ""
    return (
        f"{name}'s message was deleted, but the request is still open{so_far}. "
        "Say 'never mind' to drop it, or what is meant instead."
    )
