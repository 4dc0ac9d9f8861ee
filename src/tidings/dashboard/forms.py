"""Forms as browsers send them, and the small languages of their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request

from ..model.errors import Invalid

MOST_FIELDS = 300


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, stripped; what was left empty is left out."""
    return {name: values[0] for name, values in (await read_multi_form(request)).items()}


async def read_multi_form(request: Request) -> dict[str, list[str]]:
    """The same with every value of a field, as check boxes send them."""
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(raw, max_num_fields=MOST_FIELDS)
    except ValueError:
        remedy = "send the fields of the page's own form"
        raise Invalid(f"the form has more than {MOST_FIELDS} fields", remedy=remedy) from None
    stripped = {name: [value.strip() for value in values if value.strip()] for name, values in found.items()}
    return {name: values for name, values in stripped.items() if values}


def query_values(request: Request, *names: str) -> dict[str, Any]:
    """What the address of a page says of these; what is empty is left out."""
    return {name: value for name in names if (value := request.query_params.get(name, "").strip())}


def split_words(text: str) -> list[str]:
    """Words with commas between, each once."""
    return list(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def split_lines(text: str) -> list[str]:
    """Lines, without the empty ones."""
    return [line for part in text.splitlines() if (line := part.strip())]


def parse_pairs(text: str, field: str) -> dict[str, str]:
    """Lines such as `city = Bonn`."""
    found: dict[str, str] = {}
    for line in split_lines(text):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise Invalid(
                f"{line[:60]!r} is not a name with a value",
                field=field,
                remedy="write one a line: city = Bonn",
            )
        found[name.strip()] = value.strip()
    return found


def format_pairs(values: Mapping[str, Any]) -> str:
    """The way back."""
    return "\n".join(f"{name} = {_plain(value)}" for name, value in values.items())


def parse_declarations(text: str) -> dict[str, Any]:
    """Variables of a template, one a line.

    `town`, `table: number`, `town = Bonn` with an example, `town? = Bonn` with what stands in for none.
    """
    found: dict[str, Any] = {}
    for line in split_lines(text):
        said = re.fullmatch(r"(\w+)\s*(?::\s*(\w+))?\s*(\??)\s*(?:=\s*(.*))?", line)
        if said is None:
            remedy = "write one a line: town, or table: number, or town = Bonn with an example"
            raise Invalid(f"{line[:60]!r} is not a variable", field="variables", remedy=remedy)
        value = {"default" if said[3] else "example": said[4]} if said[4] else {}
        found[said[1]] = {"type": said[2] or "text", **({"required": False} if said[3] else {}), **value}
    return found


def format_declarations(declared: Mapping[str, Mapping[str, Any]]) -> str:
    """The way back."""
    return "\n".join(_declaration(name, said) for name, said in declared.items())


def _declaration(name: str, said: Mapping[str, Any]) -> str:
    value = said["example"] if said["required"] else said["default"]
    example = "" if value is None else f" = {_plain(value)}"
    return f"{name}: {said['type']}{'' if said['required'] else '?'}{example}"


def integer(form: Mapping[str, str], name: str) -> int | None:
    """A whole number, if one was given."""
    text = form.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text):
        raise Invalid(f"{name} is {text[:40]!r}", field=name, remedy="write a whole number")
    return int(text)


def number(form: Mapping[str, str], name: str) -> float | None:
    """A number, if one was given."""
    text = form.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}([.,]\d{1,6})?", text):
        raise Invalid(f"{name} is {text[:40]!r}", field=name, remedy="write a number, such as 5 or 0.5")
    return float(text.replace(",", "."))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
