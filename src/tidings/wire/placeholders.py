"""Placeholders: `{%address%}` in a URL, header or body, filled from one message. Pure.

A template value that is only a placeholder becomes the message's value with its type; without a value its key
is dropped. A placeholder inside other text must have a value, otherwise the message is rejected before it is
sent.
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
    """A placeholder inside other text has no value; the error text is its name."""


class _Dropped:
    """The result of a placeholder without a value."""


DROPPED = _Dropped()


def names(template: object) -> Iterator[str]:
    """Return all placeholders of a template. Raises ValueError for a malformed one."""
    if isinstance(template, str):
        if template.count(_OPENING) != len(_PLACEHOLDER.findall(template)):
            raise ValueError("it has a malformed placeholder")
        yield from _PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from names(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from names(value)


def fill(template: object, values: Mapping[str, Any], escape: Escape = str) -> Any:
    """Return the template with its placeholders replaced, or DROPPED. Raises UnresolvedPlaceholder."""
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
    """Return text in any case, for a URL or a text body. Raises UnresolvedPlaceholder."""
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
    """Return the value at a path such as `messages.0.id` or `messages[0].id`; None if there is none."""
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
    """Return a value as text: strings unchanged, others as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
