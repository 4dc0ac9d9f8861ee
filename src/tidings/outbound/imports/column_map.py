"""Map columns and JSON paths of a row to fields. Pure.

to=phone            the column `phone`
at=payload.$.when   inside the JSON of the column `payload`; also payload.$.times[0]
channel='sms'       a constant
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

from ...inputs.fields import hint
from ...model.errors import Invalid

FIELDS = (
    *("to", "text", "subject", "data", "at", "channel"),
    *("priority", "ordering_key", "expires_at", "max_attempts"),
    *("repeat", "timezone", "end", "count", "name", "group"),
)
_PAIR = re.compile(r"\s*([a-z_]+)\s*=\s*('(?:[^']|'')*'|[^,]*?)\s*(?:,|$)")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]")


class ColumnSource(NamedTuple):
    """The source of a value: a column, a path inside its JSON, or a constant."""

    column: str | None
    path: tuple[str | int, ...] = ()
    constant: str | None = None

    def __str__(self) -> str:
        if self.column is None:
            return f"the constant {self.constant!r}"
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"the column {self.column}" + (f", inside its JSON at ${steps}" if self.path else "")


def parse_column_map(texts: Sequence[str], columns: Sequence[str], channels: Sequence[str]) -> dict[str, ColumnSource]:
    """Parse a column map; raises Invalid for unknown fields, columns or paths."""
    places: dict[str, ColumnSource] = {}
    for text in texts:
        start = 0
        while start < len(text):
            found = _PAIR.match(text, start)
            if found is None or not found[2] or found.end() == start:
                raise Invalid(
                    f"{text[start : start + 60]!r} is not a valid mapping",
                    field="map",
                    remedy="write field=column, separated by commas",
                )
            name, start = found[1], found.end()
            if name not in FIELDS:
                remedy = hint(name, dict.fromkeys(FIELDS))
                raise Invalid(f"there is no field {name!r}", field="map", remedy=remedy)
            if name in places:
                raise Invalid(f"{name} is mapped twice", field="map", remedy="map it once")
            places[name] = _place(name, found[2], columns, channels)
    if "to" not in places:
        raise Invalid("the recipient is not mapped", field="map", remedy="add to=COLUMN")
    if "text" not in places and "data" not in places:
        raise Invalid("the content is not mapped", field="map", remedy="add text=COLUMN or data=COLUMN")
    if "repeat" in places and "group" in places:
        raise Invalid("both repeat and group are mapped", field="map", remedy="import them in two runs")
    return places


def _place(name: str, said: str, columns: Sequence[str], channels: Sequence[str]) -> ColumnSource:
    if said.startswith("'"):
        return ColumnSource(None, constant=said[1:-1].replace("''", "'"))
    if name == "channel" and said in channels:  # a configured channel wins over a column
        return ColumnSource(None, constant=said)
    column, dollar, path = said.partition(".$")
    if column not in columns:
        remedy = hint(column, dict.fromkeys(columns)).replace("known fields", "known columns")
        raise Invalid(
            f"the table has no column {column[:60]!r}",
            field="map",
            remedy=f"{remedy} (quote a constant: {name}='{column[:20]}')",
        )
    if not dollar:
        return ColumnSource(column)
    steps = [int(step[2]) if step[2] else step[1] for step in _STEP.finditer(path)]
    if not steps or "".join(step[0] for step in _STEP.finditer(path)) != path:
        raise Invalid(f"{said!r} is not a valid path", field="map", remedy="write column.$.name or column.$.list[0]")
    return ColumnSource(column, tuple(steps))


def value_of(place: ColumnSource, row: Mapping[str, Any]) -> Any:
    """The value in a row; None if the path does not exist."""
    if place.column is None:
        return place.constant
    value = row[place.column]
    if place.path:
        value = _json(value, place.column)
        for step in place.path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
    return float(value) if isinstance(value, Decimal) else value


def text_of(value: Any, field: str) -> str | None:
    """A value as text; numbers too, because phone numbers are often stored as numbers."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | dict | list | bool):
        raise Invalid(f"{field} is not text", field=field, remedy="map a column of text")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def object_of(value: Any, field: str) -> dict[str, Any] | None:
    """A value as a JSON object, decoded if it is text."""
    found = _json(value, field) if isinstance(value, str | bytes) else value
    if found is not None and not isinstance(found, dict):
        raise Invalid(f"{field} is not a JSON object", field=field, remedy="map a column of JSON objects")
    return found


def _json(value: Any, name: str) -> Any:
    if value is None or isinstance(value, dict | list):
        return value
    try:
        return orjson.loads(value)
    except (orjson.JSONDecodeError, TypeError):
        raise Invalid(f"{name} is not JSON", field=name, remedy="fix the row, or map another column") from None
