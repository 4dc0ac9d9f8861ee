"""Tables as CSV, in two named forms.

`csv` is for spreadsheets: a cell that a spreadsheet would take for a formula gets a leading apostrophe, which
also marks phone numbers (+49 ...). `csv-exact` is for programs and changes nothing. Both quote every cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..store.port import Row

FORMS = ("csv", "csv-exact")
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # the wide forms are read as formulas too


def csv_rows(rows: Iterable[Row], columns: Sequence[str], *, exact: bool) -> bytes:
    """Rows as lines of CSV."""
    lines = (",".join(csv_cell(row[column], exact=exact) for column in columns) for row in rows)
    return "".join(f"{line}\r\n" for line in lines).encode()


def csv_header(columns: Sequence[str], *, exact: bool = False) -> bytes:
    """The first line; names of columns may be what others wrote, so they are cells like any other."""
    return (",".join(csv_cell(column, exact=exact) for column in columns) + "\r\n").encode()


def csv_cell(value: Any, *, exact: bool) -> str:
    """One cell, quoted."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    text = "" if value is None else str(value)
    if not exact and text.startswith(_FORMULA):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'
