"""Opens a table by its URL."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from ...model.errors import Invalid
from . import files, mongo, mysql, postgres, sqlite
from .port import ExternalTable

_OPENERS = {
    **dict.fromkeys(("postgresql", "postgres"), postgres.open_table),
    **dict.fromkeys(("mysql", "mariadb"), mysql.open_table),
    **dict.fromkeys(("mongodb", "mongodb+srv"), mongo.open_table),
    "sqlite": sqlite.open_table,
}


def open_table(url: str, table: str | None, *, writable: bool = False) -> AbstractAsyncContextManager[ExternalTable]:
    """Connect, read-only unless `writable`, and find the table. Raises Invalid."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme == "file":
        return files.open_table(url, table or "", writable)
    if scheme not in _OPENERS:
        remedy = "use sqlite:///path, or a postgresql://, mysql:// or mongodb:// URL, or a CSV or NDJSON file"
        raise Invalid(f"unsupported database {scheme[:40]!r}", field="from", remedy=remedy)
    if not table:
        raise Invalid("the table is missing", field="table", remedy="name the table or collection")
    return _OPENERS[scheme](url, table, writable)
