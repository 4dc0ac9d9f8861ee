"""CSV export in two formats.

`csv` is for spreadsheets: a cell that would be read as a formula (CSV injection) gets a leading apostrophe,
and so do phone numbers (+49 ...). `csv-exact` is for programs and changes nothing. Both quote every cell.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from ..store.port import Row

FORMS = ("csv", "csv-exact")
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # full-width characters count too


def csv_rows(rows: Iterable[Row], columns: Sequence[str], *, exact: bool) -> bytes:
    """Encode rows as CSV."""
    lines = (",".join(csv_cell(row[column], exact=exact) for column in columns) for row in rows)
    return "".join(f"{line}\r\n" for line in lines).encode()


def csv_header(columns: Sequence[str], *, exact: bool = False) -> bytes:
    """Encode the header; column names can be user input, so they are escaped like any cell."""
    return (",".join(csv_cell(column, exact=exact) for column in columns) + "\r\n").encode()


async def csv_pages(
    pages: AsyncIterator[Iterable[Row]], columns: Sequence[str], *, exact: bool = False
) -> AsyncIterator[bytes]:
    """Encode the header, then each page of rows."""
    yield csv_header(columns)
    async for rows in pages:
        yield csv_rows(rows, columns, exact=exact)


def csv_cell(value: Any, *, exact: bool) -> str:
    """Quote one cell, and escape it unless `exact`."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    text = "" if value is None else str(value)
    if not exact and text.startswith(_FORMULA):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'
