"""Import of contacts and opt-outs from a file: a progress bar, the invalid rows, a summary."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..model.errors import CallerError, Invalid, TidingsError
from ..outbound.contacts import bulk_import, uploads
from . import engine, files, output
from .command_audit import audited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..config import Settings
    from ..outbound.service import OutboundService

Note = Callable[[Sequence[tuple[int, TidingsError]]], None]
_WORDS = ("created", "changed", "unchanged", "refused")


async def import_contacts(
    chosen: Settings,
    name: str,
    format_: str | None,
    options: Mapping[str, Any],
    *,
    all_or_nothing: bool,
    dry_run: bool,
    report: Path | None,
    as_json: bool,
) -> int:
    """Import every valid row. Return exit code 0, or 2 if a row was rejected."""
    read_as = files.format_of(name, format_)

    async def run(
        service: OutboundService, rows: bulk_import.ReadUpload
    ) -> AsyncIterator[bulk_import.BulkImportProgress]:
        columns = bulk_import.ContactColumns(
            service.contacts.channels,
            channel=options["channel"],
            names=bulk_import.parse_column_names(options["names"]),
            tags=options["tags"],
            is_table=read_as == "csv",
        )
        name = options["list_"]
        list_ = None if name is None else (await service.audience.with_members(name))["id"]
        async for progress in bulk_import.import_contacts(
            rows, service.contacts, columns, list_=list_, all_or_nothing=all_or_nothing, dry_run=dry_run
        ):
            yield progress
        if columns.attributes and not as_json and output.on_terminal():
            output.say((f"imported as attributes: {', '.join(sorted(columns.attributes))}", "dim"))

    counts = await _run(chosen, name, read_as, run, report=report, as_json=as_json)
    nothing = all_or_nothing and counts["refused"] > 0
    _summary(
        counts, as_json=as_json, note="nothing was imported" if nothing else "nothing was written" if dry_run else ""
    )
    return CallerError.exit_code if counts["refused"] else 0


async def import_opt_outs(
    chosen: Settings, name: str, format_: str | None, *, channel: str | None, as_json: bool
) -> int:
    """Opt out every valid row. Return exit code 0, or 2 if a row was rejected."""
    read_as = files.format_of(name, format_)

    async def run(
        service: OutboundService, rows: bulk_import.ReadUpload
    ) -> AsyncIterator[bulk_import.BulkImportProgress]:
        async for progress in bulk_import.import_opt_outs(rows(), service.suppressions, channel=channel):
            yield progress

    counts = await _run(chosen, name, read_as, run, report=None, as_json=as_json)
    _summary(counts, as_json=as_json)
    return CallerError.exit_code if counts["refused"] else 0


async def _run(
    chosen: Settings,
    name: str,
    form: uploads.UploadFormat,
    run: Callable[[OutboundService, bulk_import.ReadUpload], AsyncIterator[bulk_import.BulkImportProgress]],
    *,
    report: Path | None,
    as_json: bool,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with files.opened(name) as file, _bad_row_report(report) as note:
        async with engine.opened(chosen) as app, audited(app, "people.import"):
            with files.progress(file, is_shown=not as_json) as show:
                source = _source(file, show)

                def rows() -> AsyncIterator[uploads.NumberedRow]:
                    largest = 3 * chosen.max_body + 16_384  # the same limit as for a request
                    return uploads.read_rows(source(), form, largest=largest, most_lines=chosen.max_bulk)

                try:
                    async for progress in run(app.outbound, rows):
                        files.print_bad_rows(progress.bad, word="row", room=files.MAX_REPORTED - counts["refused"])
                        note(progress.bad)
                        counts.update(progress.counts)
                except BaseException:  # includes signals
                    if counts:
                        print(f"interrupted after {_counts_text(counts)}", file=sys.stderr)
                    raise
    return counts


def _source(file: BinaryIO, show: files.Show) -> Callable[[], AsyncIterator[bytes]]:
    """Return a function that reads the file from its beginning; a pipe is buffered for that."""
    if not file.seekable():
        return uploads.RewindableStream(files.pieces(file, show)).pieces

    def read() -> AsyncIterator[bytes]:
        file.seek(0)
        return files.pieces(file, show)

    return read


@contextmanager
def _bad_row_report(report: Path | None) -> Iterator[Note]:
    """Write the invalid rows to a CSV file: row, field, problem, remedy."""
    if report is None:
        yield lambda _: None
        return
    try:
        file = report.open("w", encoding="utf-8", newline="")
    except OSError as error:
        problem = f"{report} cannot be written ({error.strerror})"
        raise Invalid(problem, remedy="choose another path", field="report") from None
    with file:
        writer = csv.writer(file)
        writer.writerow(("row", "field", "problem", "remedy"))
        yield lambda bad: writer.writerows((n, e.field or "", e.problem, e.remedy) for n, e in bad)


def _summary(counts: Counter[str], *, as_json: bool, note: str = "") -> None:
    if as_json:
        output.say_json({word: counts[word] for word in _WORDS})
    elif output.on_terminal():
        bad = counts["refused"]
        mark = ("! ", "yellow") if bad else ("✓ ", "green")
        output.say(mark, _counts_text(counts), f"; {note}" if note else "")
    else:
        for word in _WORDS:
            print(f"{word}\t{counts[word]}")


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[word]:,} {word}" for word in _WORDS if counts[word]) or "nothing"
