"""Repairs: records that were set aside as rows that people can mend, and the same rows read back. Pure.

NDJSON has each record as it is. CSV has one column for each field, called `fields.NAME`: a cell that is JSON
is that value (5, true, null, ["a"], or "5" in quotes for the text 5), any other cell is a text, and an empty
one is no field at all. Both come back exactly as they went out, whatever is in them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..model.errors import Invalid, TidingsError

Repaired = tuple[str, str, Mapping[str, Any]]  # type, id, fields
Numbered = tuple[int, dict[str, Any] | TidingsError]  # a row of an upload, or why it is none

HEAD = ("type", "id", "standing", "failure", "field", "reason")
REST = "other_fields"  # what has no column of its own
MOST_COLUMNS = 300
FORMULA_PREFIXES = "=+-@\t\r\n＝＋－＠"  # a spreadsheet's form has an apostrophe before these
_PREFIX = "fields."


async def field_names(records: AsyncIterator[Mapping[str, Any]]) -> list[str]:
    """The fields that get a column of their own, in the order in which they are met."""
    names: dict[str, None] = {}
    async for record in records:
        names |= dict.fromkeys(record["fields"] or {})
        if len(names) >= MOST_COLUMNS:
            break
    return [name for name in names if name.isprintable() and name == name.strip()][:MOST_COLUMNS]


def columns(names: Sequence[str]) -> tuple[str, ...]:
    """The head of the table."""
    return (*HEAD, *(f"{_PREFIX}{name}" for name in names), REST)


def cells(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """One record as a row of the table."""
    fields: Mapping[str, Any] = record["fields"] or {}
    rest = {name: value for name, value in fields.items() if name not in names}
    return {
        **{name: record[name] or "" for name in HEAD},
        **{f"{_PREFIX}{name}": cell(fields[name]) if name in fields else "" for name in names},
        REST: cell(rest) if rest else "",
    }


def cell(value: Any) -> str:
    """A value in a cell; texts as they are, unless they would be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_plain = value and all(char.isprintable() or char == "\n" for char in value)
    return value if is_plain and value_of(value) == value else json.dumps(value)


def value_of(text: str) -> Any:
    """What a cell says."""
    if text[:1] == "'" and text[1:2] and text[1:2] in FORMULA_PREFIXES:
        text = text[1:]
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def row_of(line: bytes) -> dict[str, Any] | TidingsError:
    """A line of NDJSON, every digit and every half character of it."""
    remedy = "write one record a line, as the export has them"
    try:
        found = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Invalid(f"this is not JSON ({error})"[:200], remedy=remedy)
    return found if isinstance(found, dict) else Invalid("this is not a JSON object", remedy=remedy)


async def parse_repairs(rows: AsyncIterator[Numbered]) -> AsyncIterator[Repaired]:
    """Rows of either form as repaired records; the first that is not understood is raised with its number."""
    async for number, row in rows:
        if isinstance(row, TidingsError):
            raise Invalid(f"row {number}: {row.problem}", field=row.field, remedy=row.remedy)
        yield _record(number, row)


async def valid_repairs(read: Callable[[], AsyncIterator[Numbered]]) -> AsyncIterator[Repaired]:
    """Repaired records, once all rows are known to be understood: an upload is read twice."""
    found = 0
    async for _ in parse_repairs(read()):
        found += 1
    if not found:
        raise Invalid("there are no records in it", remedy="send the export back with its repairs")
    return parse_repairs(read())


def _record(number: int, row: Mapping[str, Any]) -> Repaired:
    type_, id_ = (_named(number, row, name) for name in ("type", "id"))
    if "fields" in row:
        fields = row["fields"]
        if not isinstance(fields, Mapping):
            remedy = "write the record's fields as an object, or leave the row out"
            raise Invalid(f"row {number}: fields is no object", field="fields", remedy=remedy)
        return type_, id_, fields
    own = {
        name.removeprefix(_PREFIX): text for name, text in row.items() if name.startswith(_PREFIX) and text
    }
    rest = value_of(row.get(REST) or "{}")
    if not isinstance(rest, Mapping):
        raise Invalid(
            f"row {number}: {REST} is no object", field=REST, remedy="write JSON, or leave it empty"
        )
    if not own and not rest:
        remedy = f"keep the columns {_PREFIX}NAME of the export"
        raise Invalid(f"row {number} has no fields", field="fields", remedy=remedy)
    return type_, id_, {**{name: value_of(text) for name, text in own.items()}, **rest}


def _named(number: int, row: Mapping[str, Any], name: str) -> str:
    found = row.get(name)
    if not isinstance(found, str) or not found:
        remedy = "keep type and id as the export has them"
        raise Invalid(f"row {number} has no {name}", field=name, remedy=remedy)
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of NDJSON; half characters are escaped, all others stand as they are."""
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record).encode() + b"\n"
