"""One table of a job file: every key is known and of the right type, or an error says what to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from ..model import durations
from ..model.errors import Invalid

Choice = TypeVar("Choice", bound=StrEnum)


class JobFileSection:
    """A table and its place in the file, such as types.people.fields.email."""

    def __init__(self, raw: object, place: str, known: Collection[str] | None = None) -> None:
        self.place = place
        if not isinstance(raw, Mapping) or not all(isinstance(key, str) for key in raw):
            remedy = f"write [{place}] and its keys below it"
            raise Invalid(f"{place or 'the job'} is not a table", field=place or None, remedy=remedy)
        self.raw: Mapping[str, Any] = raw
        for key in raw if known is not None else ():
            if key not in (known or ()):
                problem = f"unknown key {self.name(key)!r}"
                raise Invalid(problem, field=self.name(key), remedy=nearest(key, known or ()))

    def name(self, key: str) -> str:
        """Return the key with its place."""
        return f"{self.place}.{key[:60]}" if self.place else key[:60]

    def refuse(self, key: str, problem: str, remedy: str) -> NoReturn:
        """Raise Invalid for a key."""
        raise Invalid(f"{self.name(key)} {problem}", field=self.name(key), remedy=remedy)

    def text(self, key: str, default: str | None = None, *, longest: int = 1000) -> str | None:
        value = self.raw.get(key, default)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip() or len(value) > longest or "\0" in value:
            self.refuse(key, f"is {_short(value)}", f"write a text of at most {longest:,} characters")
        return value

    def needed(self, key: str, example: str) -> str:
        return self.text(key) or self.refuse(key, "is missing", f'write {key} = "{example}"')

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"is {_short(value)}", "write true or false")
        return value

    def whole(self, key: str, default: int, *, least: int, most: int) -> int:
        """An integer within bounds."""
        value = self.raw.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(key, f"is {_short(value)}", f"write an integer from {least:,} to {most:,}")
        return value

    def number(self, key: str, default: float | None, *, most: float) -> float | None:
        """A number greater than zero."""
        value = self.raw.get(key, default)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
            self.refuse(key, f"is {_short(value)}", f"write a number greater than zero, at most {most:,g}")
        return float(value)

    def length(self, key: str, default: timedelta) -> timedelta:
        """A duration greater than zero."""
        if key not in self.raw:
            return default
        try:
            found = durations.parse(self.raw[key])
        except ValueError:
            found = timedelta(0)
        if found <= timedelta(0):
            self.refuse(key, f"is {_short(self.raw[key])}", "write a duration such as 2s, 5m or 1h")
        return found

    def choice(self, key: str, default: Choice) -> Choice:
        """A member of an enum."""
        value = self.raw.get(key, default)
        words = type(default)
        if value not in list(words):
            self.refuse(key, f"is {_short(value)}", nearest(str(value), list(words), "use one of"))
        return words(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts without duplicates."""
        value = self.raw.get(key, [])
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            self.refuse(key, f"is {_short(value)}", 'write a list of texts such as ["one", "two"]')
        return tuple(dict.fromkeys(value))

    def tables(self, key: str) -> Mapping[str, Any]:
        """A table of tables by name."""
        return JobFileSection(self.raw.get(key, {}), self.name(key)).raw


def nearest(word: str, known: Collection[str], all_of_them: str = "known") -> str:
    """Return a hint: the closest known word, or all of them."""
    close = get_close_matches(word, known, 1, cutoff=0.7)
    return f"did you mean {close[0]!r}?" if close else f"{all_of_them}: {', '.join(known)}"


def parse_choice(words: type[Choice], name: str, given: str | None) -> Choice | None:
    """Return the member of an enum that a caller names; raises Invalid. None stays None."""
    if given is not None and given not in list(words):
        remedy = nearest(given, list(words), "use one of")
        raise Invalid(f"unknown {name} {given[:40]!r}", field=name, remedy=remedy)
    return None if given is None else words(given)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
