"""Declared variables of a template: types, defaults, and checks of the given values.

Values come from JSON or from a CSV column, so numbers and booleans may also be written as strings. An empty
string counts as missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

import orjson

from ...inputs.fields import hint
from ...model.errors import Invalid, TooLarge

RESERVED = frozenset(
    {"contact", "recipient", "loop", "self", "super", "caller", "varargs", "kwargs", "true", "false", "none"}
    | {"True", "False", "None", "and", "or", "not", "if", "elif", "else", "for", "in", "is"}
)
CONTACT_FIELDS = ("name", "timezone", "language", "tags", "attributes")
MAX_VARIABLES = 100
MAX_VALUES_SIZE = 64 * 1024  # characters of all values
MAX_TEXT_SIZE = 256 * 1024  # characters of one rendering
MAX_NUMBER = 10**15
MAX_ITEMS = 1000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_PARTS = ("type", "required", "default", "example")


class TemplateVariable(NamedTuple):
    """A declared variable; required unless it has a default or is declared optional."""

    name: str
    type: str = "text"
    required: bool = True
    default: Any = None
    example: Any = None

    def read(self, given: object) -> Any:
        """Parse a value; raises Invalid if it has the wrong type."""
        found = _TYPES[self.type].read(given)
        if found is None:
            shown = self.example if self.example is not None else _TYPES[self.type].example
            raise Invalid(
                f"the variable {self.name!r} is not {_TYPES[self.type].words}",
                field=f"variables.{self.name}",
                remedy=f"for example {orjson.dumps(shown).decode()}",
            )
        return found


class DeclaredVariables:
    """The variables of one template version."""

    def __init__(self, variables: Mapping[str, TemplateVariable]) -> None:
        self.variables = variables
        self._all = tuple(variables.values())

    def bind(self, given: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
        """A value for each variable; `strict` raises Invalid for undeclared ones."""
        values: dict[str, Any] = {}
        size = 0
        for variable in self._all:
            value = given.get(variable.name)
            if value is None or value == "":
                if variable.required:
                    raise _missing(variable, given, self.variables)
                values[variable.name] = variable.default
            else:
                value = values[variable.name] = variable.read(value)
                size += len(value) if type(value) is str else 0
        if size > MAX_VALUES_SIZE:
            raise TooLarge(
                f"the variables have {size:,} characters",
                field="variables",
                remedy=f"at most {MAX_VALUES_SIZE:,} are accepted",
            )
        if strict and not given.keys() <= self.variables.keys():
            raise _unknown(given, self.variables)
        return values

    def as_json(self) -> dict[str, Any]:
        """The declarations as stored and shown."""
        return {variable.name: {part: getattr(variable, part) for part in _PARTS} for variable in self._all}

    def sampled(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The given values completed with examples for a preview, and the names of those."""
        filled = {
            variable.name: variable.example
            for variable in self._all
            if given.get(variable.name) in (None, "") and variable.required and variable.example is not None
        }
        return {**given, **filled}, sorted(filled)


def parse_declarations(given: object) -> DeclaredVariables:
    """Parse declarations: name to type, or to an object with type, required, default and example."""
    if given is None:
        return DeclaredVariables({})
    if not isinstance(given, dict):
        raise Invalid("variables is not an object", field="variables", remedy='write {"name": "text", "age": "number"}')
    if len(given) > MAX_VARIABLES:
        raise Invalid(f"{len(given)} variables are declared", field="variables", remedy=f"use at most {MAX_VARIABLES}")
    return DeclaredVariables({name: _declared(name, said) for name, said in given.items()})


def is_variable_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _declared(name: str, said: object) -> TemplateVariable:
    field = f"variables.{name[:60]}"
    if not is_variable_name(name) or name in RESERVED:
        raise Invalid(
            f"{name[:60]!r} is not a valid variable name",
            field=field,
            remedy="use a letter, then letters, digits or _ (reserved words are not allowed)",
        )
    parts = {"type": said} if isinstance(said, str) else said
    if not isinstance(parts, dict):
        raise Invalid(f"{name} is neither a type nor an object", field=field, remedy=f"types: {', '.join(_TYPES)}")
    for part in parts:
        if part not in _PARTS:
            raise Invalid(f"{name} has an unknown part {part[:60]!r}", field=field, remedy=hint(part, _KNOWN_PARTS))
    type_ = parts.get("type") or "text"
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise Invalid(
            f"{name} has the unknown type {str(type_)[:60]!r}", field=field, remedy=f"types: {', '.join(_TYPES)}"
        )
    return _settled(name, type_, parts, field)


def _settled(name: str, type_: str, parts: Mapping[str, Any], field: str) -> TemplateVariable:
    default, example, required = parts.get("default"), parts.get("example"), parts.get("required")
    if required is not None and type(required) is not bool:
        raise Invalid(f"{name}: required is not true or false", field=field, remedy="write true or false")
    if required and default is not None:
        raise Invalid(f"{name} is required and has a default", field=field, remedy="leave one of the two out")
    plain = TemplateVariable(name, type_)
    return TemplateVariable(
        name,
        type_,
        required if required is not None else default is None,
        default if default is None or default == "" else plain.read(default),
        example if example is None else plain.read(example),
    )


def _missing(variable: TemplateVariable, given: Mapping[str, Any], known: Mapping[str, TemplateVariable]) -> Invalid:
    strangers = [name for name in given if name not in known]
    remedy = f'give it in `variables`: {{"{variable.name}": …}}'
    if strangers:
        remedy += f" (given but not declared: {', '.join(map(repr, sorted(strangers)[:5]))})"
    return Invalid(f"the variable {variable.name!r} is missing", field=f"variables.{variable.name}", remedy=remedy)


def _unknown(given: Mapping[str, Any], known: Mapping[str, TemplateVariable]) -> Invalid:
    name = next(name for name in given if name not in known)
    return Invalid(
        f"the template has no variable {name[:60]!r}",
        field=f"variables.{name[:60]}",
        remedy=hint(name, known).replace("fields", "variables"),
    )


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _number(given: object) -> int | float | None:
    if isinstance(given, str):
        given = _written(given)
    if type(given) is int or (type(given) is float and math.isfinite(given)):
        return given if -MAX_NUMBER <= given <= MAX_NUMBER else None
    return None


def _written(text: str) -> int | float | None:
    """A number written as text, without Python's other notations."""
    if not re.fullmatch(r"[+-]?\d{1,16}(\.\d{1,16})?", text.strip(), re.ASCII):
        return None
    return float(text) if "." in text else int(text)


def _date(given: object) -> str | None:
    """A date, or a time with offset; kept as text, because the filters parse it."""
    if not isinstance(given, str) or len(given) > 40:
        return None
    return given if read_date(given) is not None else None


def read_date(text: str) -> date | datetime | None:
    """A date or an aware datetime from ISO 8601; None if it is neither."""
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _boolean(given: object) -> bool | None:
    if isinstance(given, str):
        return _WORDS.get(given.strip().lower())
    return given if isinstance(given, bool) else None


def _list(given: object) -> list[Any] | None:
    """A list of strings, numbers, booleans or flat objects of them."""
    if not isinstance(given, list) or len(given) > MAX_ITEMS or not all(map(_is_item, given)):
        return None
    size = sum(len(str(item)) for item in given)
    return given if size <= MAX_VALUES_SIZE else None


def _is_item(item: object) -> bool:
    if isinstance(item, dict):
        return all(isinstance(name, str) and _is_plain(value) for name, value in item.items())
    return _is_plain(item)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | bool) or (_number(value) is not None)


class _VariableType(NamedTuple):
    read: Callable[[object], Any]
    words: str
    example: Any


_TYPES: Mapping[str, _VariableType] = {
    "text": _VariableType(_text, "a string", "Ada"),
    "number": _VariableType(_number, "a number", 12.5),
    "date": _VariableType(_date, "a date (or a time with offset)", "2027-01-15"),
    "boolean": _VariableType(_boolean, "true or false", True),
    "list": _VariableType(_list, f"a list (of at most {MAX_ITEMS} plain values or flat objects)", ["bread", "milk"]),
}
_KNOWN_PARTS = dict.fromkeys(_PARTS)
