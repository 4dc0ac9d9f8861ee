"""The subset of JSON Schema that prompts may use and every provider of structured output supports. Pure.

Schemas are checked when the prompt is loaded, and answers when they arrive, because a provider's structured
output is not trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
_KEYWORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum",
    "maximum", "description",
})  # fmt: skip


def check_schema(schema: object, place: str = "the schema") -> None:
    """Raise ValueError if the schema is invalid or not supported."""
    if not isinstance(schema, dict):
        raise ValueError(f"{place} is not an object")
    if unknown := sorted(set(schema) - _KEYWORDS):
        raise ValueError(f"{place} has {unknown[0]!r}, which not every provider supports")
    if not (types := _types(schema)) or not set(types) <= set(_IS):
        raise ValueError(f"{place} has a missing or unknown type")
    if "array" in types:
        check_schema(schema.get("items"), f"{place}.items")
    if "object" in types:
        _refuse_object(schema, place)
    re.compile(schema.get("pattern", ""))


def _refuse_object(schema: Mapping[str, Any], place: str) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
        raise ValueError(f"{place} must have properties and additionalProperties = false")
    if set(schema.get("required", ())) != set(properties):
        raise ValueError(f"{place} must require all its properties")
    for name, inner in properties.items():
        check_schema(inner, f"{place}.{name}")


def schema_violation(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return the first violation of the schema, or None if the value is valid."""
    return next(_problems(value, schema, ""), None)


def _problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    named = place or "the answer"
    types = _types(schema)
    if not any(_IS[kind](value) for kind in types):
        yield f"{named} must be {' or '.join(types)}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{named} must be one of {', '.join(str(one) for one in schema['enum'])}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{named} must match {schema['pattern']}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not least <= value <= most:
            yield f"{named} must be from {least} to {most}"
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _problems(one, schema["items"], f"{place}[{index}]")
    elif isinstance(value, dict):
        yield from _of_object(value, schema["properties"], place)


def _of_object(value: Mapping[str, Any], properties: Mapping[str, Any], place: str) -> Iterator[str]:
    inside = f"{place}." if place else ""
    for name in value.keys() - properties.keys():
        yield f"{inside}{name} is not allowed"
    for name, inner in properties.items():
        if name not in value:
            yield f"{inside}{name} is missing"
        else:
            yield from _problems(value[name], inner, f"{inside}{name}")


def _types(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return [given] if isinstance(given, str) else list(given)
