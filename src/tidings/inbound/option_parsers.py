"""Parsers of the tables of [inbound] and their values. A value's parser raises ValueError with the requirement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from ..model import durations
from ..model.errors import Misconfigured


def parse_table(table: str, given: object, parsers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Parse the options of a table; raises Misconfigured with the option and its remedy, never with a value."""
    if not isinstance(given, Mapping):
        raise Misconfigured(f"{table} is not a table", remedy=f"Write [{table}] and its options below it", field=table)
    parsed = {}
    for name, value in given.items():
        field = f"{table}.{name}"
        if name not in parsers:
            close = get_close_matches(name, parsers, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known options: {', '.join(parsers)}"
            raise Misconfigured(f"{field}: unknown option", remedy=remedy, field=field)
        try:
            parsed[name] = parsers[name](value)
        except ValueError as error:
            raise Misconfigured(f"{field}: invalid value", remedy=str(error).capitalize(), field=field) from None
    return parsed


def refusal(field: str, problem: str, remedy: str) -> Misconfigured:
    """Return the error about one option."""
    return Misconfigured(problem, remedy=remedy, field=field)


def text(value: object) -> str:
    """Parse a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a non-empty string")
    return value


def flag(value: object) -> bool:
    """Parse a boolean."""
    parsed = {"true": True, "false": False}.get(str(value).lower())
    if parsed is None:
        raise ValueError("must be true or false")
    return parsed


def duration(value: Any) -> timedelta:
    """Parse a duration greater than zero."""
    length = durations.parse(value)
    if not length:
        raise ValueError("must be a duration greater than zero, such as 30m")
    return length


def one_of(known: Sequence[str]) -> Callable[[object], str]:
    """Return a parser that accepts these values."""

    def parse(value: object) -> str:
        if value not in known:
            raise ValueError(f"must be one of: {', '.join(known)}")
        return str(value)

    return parse


def whole(least: int, most: int) -> Callable[[object], int]:
    """Return a parser for whole numbers in a range."""

    def parse(value: object) -> int:
        is_whole = not isinstance(value, bool) and re.fullmatch(r"\d{1,9}", str(value))
        if not is_whole or not least <= int(str(value)) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(str(value))

    return parse


def names(longest: int, least: int = 0) -> Callable[[object], tuple[str, ...]]:
    """Return a parser for a list of names, or a comma-separated string of them."""

    def parse(value: object) -> tuple[str, ...]:
        given = value.split(",") if isinstance(value, str) else value
        problem = f'must be a list of names of 1 to {longest} characters, such as ["34", "35"]'
        if not isinstance(given, list | tuple):
            raise ValueError(problem)
        found = tuple(dict.fromkeys(str(name).strip() for name in given))
        if len(found) < least or not all(0 < len(name) <= longest and name.isprintable() for name in found):
            raise ValueError(problem)
        return found

    return parse
