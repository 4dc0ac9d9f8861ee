"""Records that were set aside, out as CSV or NDJSON and back again; memory flat, and nothing half taken.

An upload is read through once before anything is changed, so a row that is not understood changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..migration import repairs
from ..migration.desk import Migrations
from ..migration.repairs import Repaired
from ..model.errors import TidingsError
from ..outbound.people.uploads import Form, Numbered, Replay, lines, rows
from .sheet import head, sheet

FORMS = ("ndjson", "csv", "csv-exact")
LARGEST_ROW = 64 << 20
_AT_ONCE = 200


async def exported(
    migrations: Migrations, id_: str, *, form: str, cause: str | None = None, type_: str | None = None
) -> AsyncIterator[bytes]:
    """What was set aside, in pieces."""
    if form == "ndjson":
        async for record in migrations.export(id_, fingerprint=cause, type=type_):
            yield repairs.line(record)
        return
    names = await repairs.field_names(migrations.export(id_, fingerprint=cause, type=type_))
    columns, exact = repairs.columns(names), form == "csv-exact"
    yield head(columns, exact=exact)
    async for record in migrations.export(id_, fingerprint=cause, type=type_):
        yield sheet([repairs.cells(record, names)], columns, exact=exact)


@asynccontextmanager
async def repaired(
    pieces: AsyncIterator[bytes], form: Form, *, most: int
) -> AsyncIterator[AsyncIterator[Repaired]]:
    """The records of an upload, once all of them are known to be understood."""
    kept = Replay(pieces)
    try:
        yield await repairs.understood(lambda: numbered(kept.pieces(), form, most=most))
    finally:
        kept.close()


async def numbered(pieces: AsyncIterator[bytes], form: Form, *, most: int) -> AsyncIterator[Numbered]:
    """Rows of either form, with their numbers."""
    if form == "csv":
        async for row in rows(pieces, form, largest=LARGEST_ROW, most_lines=most, exact=True):
            yield row
        return
    async for number, line in lines(pieces, largest=LARGEST_ROW, most_lines=most):
        yield number, line if isinstance(line, TidingsError) else repairs.row_of(line)
