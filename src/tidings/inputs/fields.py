"""Fields of a request body: types, required fields, and hints for unknown ones.

The same table validates requests and becomes JSON Schema, so both always agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ..model.errors import Invalid

_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "number": float,
}
_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "number": "a number",
}


_SYNONYMS = {  # names of other systems
    "from": ("sender",),
    "message": ("text",),
    "body": ("text",),
    "zone": ("timezone",),
    **dict.fromkeys(("phone", "number", "email", "recipient", "to", "chat_id"), ("to", "address")),
}


class Field(NamedTuple):
    """One field: its JSON Schema type, description and example."""

    type: str
    about: str
    example: Any = None
    required: bool = False
    also: str | None = None  # another accepted type

    @property
    def types(self) -> tuple[str, ...]:
        """All accepted types."""
        return (self.type,) if self.also is None else (self.type, self.also)


def check_fields(body: object, known: Mapping[str, Field]) -> dict[str, Any]:
    """Return the body, or raise Invalid for unknown, missing or mistyped fields; null counts as missing."""
    if not isinstance(body, dict):
        raise Invalid("the body is not a JSON object", remedy='write {"name": "value", ...}')
    for name, value in body.items():
        field = known.get(name)
        if field is None:
            raise Invalid(f"unknown field {name[:60]!r}", field=name[:60], remedy=hint(name, known))
        if value is not None and type(value) not in [_TYPES[name] for name in field.types]:
            if field.type == "number" and type(value) is int:
                continue
            example = f"for example {field.example!r}" if field.example is not None else "see the reference"
            raise Invalid(f"{name} is not {_NAMES[field.type]}", field=name, remedy=example.replace("'", '"'))
    for name, field in known.items():
        if field.required and body.get(name) is None:
            raise Invalid(f"{name} is missing", field=name, remedy=field.about)
    return body


def hint(name: str, known: Mapping[str, object]) -> str:
    """Suggest the closest known name, or list all."""
    if close := closest(name, known, cutoff=0.7):
        return f"did you mean {close!r}?"
    return f"known fields: {', '.join(known)}" if known else "omit it"


def closest(name: str, known: Collection[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that was probably meant: a synonym, or one with a similar spelling."""
    synonyms = [other for other in _SYNONYMS.get(name.lower(), ()) if other in known]
    return next(iter(synonyms or get_close_matches(name, known, 1, cutoff)), None)


def json_schema(known: Mapping[str, Field]) -> dict[str, Any]:
    """Return the table as JSON Schema."""
    properties = {
        name: {
            "type": field.type if field.required and field.also is None else _all_types(field),
            "description": field.about,
            **({"example": field.example} if field.example is not None else {}),
        }
        for name, field in known.items()
    }
    required = [name for name, field in known.items() if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _all_types(field: Field) -> list[str]:
    """Return the accepted types; optional fields accept null."""
    return [*field.types, *(() if field.required else ("null",))]
