"""Records that were quarantined go out as rows and come back exactly, unless somebody has mended them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tidings.api import csv_export
from tidings.api.migration_repairs import numbered_rows
from tidings.migration import dead_letter_files
from tidings.model.errors import Invalid
from tidings.outbound.contacts.uploads import UploadFormat

NASTY: list[Any] = [
    "plain", "", "5", "true", "null", '"quoted"', "'=1+1", "=1+1", "+49 30", "-5", "@home", " padded ",
    "two\nlines", "Null\x00Byte", "half \ud800", "Ünï 漢字", "a,b;c\td", "[]", "NaN", "1e999x", "\r\n",
    "'tis", "\ttab", 5, -5, 1.5, 10**40, True, False, None, [], {}, ["a", {"b": [1, None]}], {"x": "ü"},
]  # fmt: skip


def record(fields: Mapping[str, Any] | None, id_: str = "1") -> dict[str, Any]:
    said = {"state": "rejected", "failure": "validation", "field": "email", "reason": "not an address"}
    return {"type": "people", "id": id_, **said, "fields": fields}


def there_and_back(
    records: list[dict[str, Any]], form: UploadFormat, *, exact: bool = True
) -> list[dead_letter_files.Repaired]:
    """Through the bytes of a file, in pieces that cut rows anywhere."""

    async def work() -> list[dead_letter_files.Repaired]:
        if form == "ndjson":
            data = b"".join(map(dead_letter_files.line, records))
        else:
            names = await dead_letter_files.field_names(listed(records))
            columns = dead_letter_files.columns(names)
            data = csv_export.csv_header(columns, exact=exact)
            data += csv_export.csv_rows([dead_letter_files.cells(one, names) for one in records], columns, exact=exact)

        async def pieces() -> AsyncIterator[bytes]:
            for place in range(0, len(data), 7):
                yield data[place : place + 7]

        return [one async for one in dead_letter_files.parse_repairs(numbered_rows(pieces(), form, most=1000))]

    return asyncio.run(work())


async def listed(records: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for one in records:
        yield one


@pytest.mark.parametrize("exact", [True, False])
def test_every_value_comes_back_from_a_table_as_it_went_out(exact: bool) -> None:
    """Texts that look like numbers, formulas, null bytes, nested values; in both forms of CSV."""
    fields = {f"Field {n}": value for n, value in enumerate(NASTY)}
    records = [record(fields), record({"Field 0": "other", "id": 7, "type": 0}, "2")]

    back = there_and_back(records, "csv", exact=exact)

    assert back == [("people", one["id"], one["fields"]) for one in records]
    assert [type(value) for value in back[0][2].values()] == [type(value) for value in NASTY]


def test_every_value_comes_back_from_ndjson_as_it_went_out() -> None:
    """The same, without a table; a record that the source could not give has nothing in it."""
    fields = {f"Field {n}": value for n, value in enumerate(NASTY)}

    assert there_and_back([record(fields)], "ndjson") == [("people", "1", fields)]


def test_the_csv_formula_injection_guard_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the safe form puts an apostrophe before, the way back takes it from; and columns are bounded."""
    assert tuple(dead_letter_files.FORMULA_PREFIXES) == csv_export._FORMULA
    monkeypatch.setattr(dead_letter_files, "MOST_COLUMNS", 2)
    fields = {"a": "1", "b": 2, "c": [3], "d": "x"}

    assert there_and_back([record(fields)], "csv") == [("people", "1", fields)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"type": "people", "fields": {}}, "row 7 has no id"),
        ({"id": "1", "fields": {}}, "row 7 has no type"),
        ({"type": "people", "id": "1", "fields": [1]}, "row 7: fields is not an object"),
        ({"type": "people", "id": "1", "reason": "x"}, "row 7 has no fields"),
        ({"type": "people", "id": "1", "other_fields": "[1]"}, "row 7: other_fields is not an object"),
        (Invalid("this is not JSON", remedy="mend it"), "row 7: this is not JSON"),
    ],
)
def test_a_row_that_is_not_understood_is_named(row: Any, says: str) -> None:
    """With its number and what to do about it."""

    async def one() -> AsyncIterator[tuple[int, Any]]:
        yield 7, row

    async def read() -> None:
        async for _ in dead_letter_files.parse_repairs(one()):
            pass

    with pytest.raises(Invalid) as refused:
        asyncio.run(read())

    assert refused.value.problem == says and refused.value.remedy
