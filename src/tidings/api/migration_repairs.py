"""Export of quarantined migration records as CSV or NDJSON, and upload of repaired ones, in constant memory.

An upload is validated completely before anything is changed, so an invalid row changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..migration import dead_letter_files
from ..migration.dead_letter_files import Repaired
from ..migration.service import MigrationService
from ..model.errors import TidingsError
from ..outbound.contacts.uploads import NumberedRow, RewindableStream, UploadFormat, read_lines, read_rows
from .csv_export import csv_header, csv_rows

FORMS = ("ndjson", "csv", "csv-exact")
LARGEST_ROW = 64 << 20


async def export_records(
    migrations: MigrationService, id_: str, *, form: str, cause: str | None = None, type_: str | None = None
) -> AsyncIterator[bytes]:
    """Yield the quarantined records in chunks."""
    if form == "ndjson":
        async for record in migrations.export(id_, fingerprint=cause, type=type_):
            yield dead_letter_files.line(record)
        return
    names = await dead_letter_files.field_names(migrations.export(id_, fingerprint=cause, type=type_))
    columns, exact = dead_letter_files.columns(names), form == "csv-exact"
    yield csv_header(columns, exact=exact)
    async for record in migrations.export(id_, fingerprint=cause, type=type_):
        yield csv_rows([dead_letter_files.cells(record, names)], columns, exact=exact)


@asynccontextmanager
async def read_repaired(
    chunks: AsyncIterator[bytes], form: UploadFormat, *, most: int
) -> AsyncIterator[AsyncIterator[Repaired]]:
    """Yield the records of an upload after all of them have been validated."""
    kept = RewindableStream(chunks)
    try:
        yield await dead_letter_files.valid_repairs(lambda: numbered_rows(kept.pieces(), form, most=most))
    finally:
        kept.close()


async def numbered_rows(chunks: AsyncIterator[bytes], form: UploadFormat, *, most: int) -> AsyncIterator[NumberedRow]:
    """Yield the rows of a CSV or NDJSON upload with their numbers."""
    if form == "csv":
        async for row in read_rows(chunks, form, largest=LARGEST_ROW, most_lines=most, exact=True):
            yield row
        return
    async for number, line in read_lines(chunks, largest=LARGEST_ROW, most_lines=most):
        yield number, line if isinstance(line, TidingsError) else dead_letter_files.row_of(line)
