"""Placeholders: `{%address%}` in a URL, a header or a body, filled from one message. Pure.

A value that is nothing but a placeholder takes what it stands for, with its type; one that stands for nothing
drops its key. Inside other text a placeholder must stand for something, or the message is refused before it
is sent: half a sentence is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

_PLACEHOLDER = re.compile(r"\{%\s*([\w.-]{1,200})\s*%\}")
_OPENING = "{%"

Escape = Callable[[str], str]


class UnresolvedPlaceholder(Exception):
    """A placeholder inside other text stands for nothing; its text is the placeholder's name."""


class _Dropped:
    """What stands for nothing."""


DROPPED = _Dropped()


def names(template: object) -> Iterator[str]:
    """Every placeholder in a template; raises ValueError for one that cannot be read."""
    if isinstance(template, str):
        if template.count(_OPENING) != len(_PLACEHOLDER.findall(template)):
            raise ValueError("it has a placeholder that cannot be read")
        yield from _PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from names(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from names(value)


def fill(template: object, values: Mapping[str, Any], escape: Escape = str) -> Any:
    """The template with its placeholders replaced, or DROPPED; raises Unresolved."""
    if isinstance(template, str):
        return _fill_text(template, values, escape)
    if isinstance(template, Mapping):
        filled = {key: fill(value, values, escape) for key, value in template.items()}
        return {key: value for key, value in filled.items() if value is not DROPPED}
    if isinstance(template, list | tuple):
        filled_list = [fill(value, values, escape) for value in template]
        return [value for value in filled_list if value is not DROPPED]
    return template


def fill_text(template: str, values: Mapping[str, Any], escape: Escape = str) -> str:
    """Always a text: for a URL, or a body that is one. Raises Unresolved."""
    if _OPENING not in template:
        return template

    def replace(found: re.Match[str]) -> str:
        value = look_up(values, found[1])
        if value is None:
            raise UnresolvedPlaceholder(found[1])
        return escape(as_text(value))

    return _PLACEHOLDER.sub(replace, template)


def _fill_text(template: str, values: Mapping[str, Any], escape: Escape) -> Any:
    alone = _PLACEHOLDER.fullmatch(template)
    if alone is None:
        return fill_text(template, values, escape)
    value = look_up(values, alone[1])
    return DROPPED if value is None else value


def look_up(values: object, path: str) -> Any:
    """What is at a path such as `messages.0.id` or `messages[0].id`; None when nothing is there."""
    for step in _steps(path):
        if isinstance(values, Mapping):
            values = values.get(step)
        elif isinstance(values, list) and step.isascii() and step.isdigit() and int(step) < len(values):
            values = values[int(step)]
        else:
            return None
    return values


@lru_cache(maxsize=1000)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(re.split(r"[.\[\]]+", path.removeprefix("$").strip(".[]")))


def as_text(value: object) -> str:
    """A value as it stands in a text: JSON, but for texts themselves."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
