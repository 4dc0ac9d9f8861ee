"""Parsing of submitted forms, and of fields with a syntax: pairs, variable declarations, numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request

from ..model.errors import Invalid

MAX_FIELDS = 300

Form = Mapping[str, str]  # the submitted fields, stripped and without empty ones


async def read_form(request: Request) -> Form:
    """Return the fields of a form, stripped and without empty ones."""
    return {name: values[0] for name, values in (await read_multi_form(request)).items()}


async def read_multi_form(request: Request) -> dict[str, list[str]]:
    """Return the same with all values of each field, as checkboxes send them."""
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(raw, max_num_fields=MAX_FIELDS)
    except ValueError:
        remedy = "submit the form of the dashboard"
        raise Invalid(f"the form has more than {MAX_FIELDS} fields", remedy=remedy) from None
    stripped = {name: [value.strip() for value in values if value.strip()] for name, values in found.items()}
    return {name: values for name, values in stripped.items() if values}


def query_values(request: Request, *names: str) -> dict[str, Any]:
    """Return these query parameters, stripped and without empty ones."""
    return {name: value for name in names if (value := request.query_params.get(name, "").strip())}


def split_words(text: str) -> list[str]:
    """Split comma-separated words, without duplicates."""
    return list(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def split_lines(text: str) -> list[str]:
    """Split lines, without empty ones."""
    return [line for part in text.splitlines() if (line := part.strip())]


def parse_pairs(text: str, field: str) -> dict[str, str]:
    """Parse lines such as `city = Bonn`."""
    found: dict[str, str] = {}
    for line in split_lines(text):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise Invalid(
                f"{line[:60]!r} is not a name and a value", field=field, remedy="write one pair per line: city = Bonn"
            )
        found[name.strip()] = value.strip()
    return found


def format_pairs(values: Mapping[str, Any]) -> str:
    """Format values as lines that `parse_pairs` reads."""
    return "\n".join(f"{name} = {_plain(value)}" for name, value in values.items())


def parse_declarations(text: str) -> dict[str, Any]:
    """Parse template variables, one per line.

    `town`, `table: number`, `town = Bonn` with an example, `town? = Bonn` optional with a default.
    """
    found: dict[str, Any] = {}
    for line in split_lines(text):
        parts = re.fullmatch(r"(\w+)\s*(?::\s*(\w+))?\s*(\??)\s*(?:=\s*(.*))?", line)
        if parts is None:
            remedy = "write one variable per line: town, table: number, or town = Bonn with an example"
            raise Invalid(f"{line[:60]!r} is not a variable", field="variables", remedy=remedy)
        value = {"default" if parts[3] else "example": parts[4]} if parts[4] else {}
        found[parts[1]] = {"type": parts[2] or "text", **({"required": False} if parts[3] else {}), **value}
    return found


def format_declarations(declared: Mapping[str, Mapping[str, Any]]) -> str:
    """Format variables as lines that `parse_declarations` reads."""
    return "\n".join(_declaration(name, options) for name, options in declared.items())


def _declaration(name: str, options: Mapping[str, Any]) -> str:
    value = options["example"] if options["required"] else options["default"]
    example = "" if value is None else f" = {_plain(value)}"
    return f"{name}: {options['type']}{'' if options['required'] else '?'}{example}"


def integer(form: Form, name: str) -> int | None:
    """Return a field as a whole number, or None if it is empty."""
    text = _matching(form, name, r"\d{1,9}", "a whole number")
    return None if text is None else int(text)


def number(form: Form, name: str) -> float | None:
    """Return a field as a number, or None if it is empty."""
    text = _matching(form, name, r"\d{1,9}([.,]\d{1,6})?", "a number, such as 5 or 0.5")
    return None if text is None else float(text.replace(",", "."))


def _matching(form: Form, name: str, pattern: str, expected: str) -> str | None:
    text = form.get(name)
    if text is not None and not re.fullmatch(pattern, text):
        raise Invalid(f"invalid number {text[:40]!r}", field=name, remedy=f"enter {expected}")
    return text


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
