"""Dead letters as CSV or NDJSON for repair, and the repaired files parsed. Pure.

NDJSON has each record unchanged. CSV has one column per field, named `fields.NAME`: a cell with JSON is that
value (5, true, null, ["a"], or "5" in quotes for the text 5), any other cell is a text, an empty cell is no
field. Both round-trip exactly. CSV cells are protected against formula injection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..model.errors import Invalid, TidingsError

Repaired = tuple[str, str, Mapping[str, Any]]  # type, id, fields
Numbered = tuple[int, dict[str, Any] | TidingsError]  # a row of an upload, or why it is invalid

HEAD = ("type", "id", "state", "failure", "field", "reason")
REST = "other_fields"  # fields without a column
MOST_COLUMNS = 300
FORMULA_PREFIXES = "=+-@\t\r\n＝＋－＠"  # escaped with an apostrophe for spreadsheets (CSV formula injection)
_PREFIX = "fields."


async def field_names(records: AsyncIterator[Mapping[str, Any]]) -> list[str]:
    """Return the fields that get a column, in the order of their first use."""
    names: dict[str, None] = {}
    async for record in records:
        names |= dict.fromkeys(record["fields"] or {})
        if len(names) >= MOST_COLUMNS:
            break
    return [name for name in names if name.isprintable() and name == name.strip()][:MOST_COLUMNS]


def columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the header of the table."""
    return (*HEAD, *(f"{_PREFIX}{name}" for name in names), REST)


def cells(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return one record as a row of the table."""
    fields: Mapping[str, Any] = record["fields"] or {}
    rest = {name: value for name, value in fields.items() if name not in names}
    return {
        **{name: record[name] or "" for name in HEAD},
        **{f"{_PREFIX}{name}": cell(fields[name]) if name in fields else "" for name in names},
        REST: cell(rest) if rest else "",
    }


def cell(value: Any) -> str:
    """Encode a value as a cell; texts unchanged unless they would parse as something else."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_plain = value and all(char.isprintable() or char == "\n" for char in value)
    return value if is_plain and value_of(value) == value else json.dumps(value)


def value_of(text: str) -> Any:
    """Parse a cell."""
    if text[:1] == "'" and text[1:2] and text[1:2] in FORMULA_PREFIXES:
        text = text[1:]
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def row_of(line: bytes) -> dict[str, Any] | TidingsError:
    """Parse a line of NDJSON without losing digits or lone surrogates."""
    remedy = "write one record per line, as in the export"
    try:
        found = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Invalid(f"this is not JSON ({error})"[:200], remedy=remedy)
    return found if isinstance(found, dict) else Invalid("this is not a JSON object", remedy=remedy)


async def parse_repairs(rows: AsyncIterator[Numbered]) -> AsyncIterator[Repaired]:
    """Parse rows of either format; raises Invalid with the number of the first invalid row."""
    async for number, row in rows:
        if isinstance(row, TidingsError):
            raise Invalid(f"row {number}: {row.problem}", field=row.field, remedy=row.remedy)
        yield _record(number, row)


async def valid_repairs(read: Callable[[], AsyncIterator[Numbered]]) -> AsyncIterator[Repaired]:
    """Return repaired records after all rows have been validated: an upload is read twice."""
    found = 0
    async for _ in parse_repairs(read()):
        found += 1
    if not found:
        raise Invalid("the file has no records", remedy="upload the export with your repairs")
    return parse_repairs(read())


def _record(number: int, row: Mapping[str, Any]) -> Repaired:
    type_, id_ = (_named(number, row, name) for name in ("type", "id"))
    if "fields" in row:
        fields = row["fields"]
        if not isinstance(fields, Mapping):
            remedy = "write the record's fields as an object, or remove the row"
            raise Invalid(f"row {number}: fields is not an object", field="fields", remedy=remedy)
        return type_, id_, fields
    own = {name.removeprefix(_PREFIX): text for name, text in row.items() if name.startswith(_PREFIX) and text}
    rest = value_of(row.get(REST) or "{}")
    if not isinstance(rest, Mapping):
        raise Invalid(f"row {number}: {REST} is not an object", field=REST, remedy="write JSON or nothing")
    if not own and not rest:
        remedy = f"keep the columns {_PREFIX}NAME of the export"
        raise Invalid(f"row {number} has no fields", field="fields", remedy=remedy)
    return type_, id_, {**{name: value_of(text) for name, text in own.items()}, **rest}


def _named(number: int, row: Mapping[str, Any], name: str) -> str:
    found = row.get(name)
    if not isinstance(found, str) or not found:
        remedy = "keep type and id as in the export"
        raise Invalid(f"row {number} has no {name}", field=name, remedy=remedy)
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def line(record: Mapping[str, Any]) -> bytes:
    """Encode a record as a line of NDJSON; lone surrogates are escaped."""
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record).encode() + b"\n"
