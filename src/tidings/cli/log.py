"""`tidings log`: all that was sent, to whom, when, with what result (E9)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from . import engine, output
from .options import AsJson, ConfigFile, Database, OfChannel
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App

_FIELDS = ("at", "result", "channel", "to", "tries", "category", "error", "receipt", "id", "text")


def log(
    *,
    channel: OfChannel = None,
    to: Annotated[str | None, typer.Option(metavar="WHO", help="Only to this recipient.")] = None,
    result: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only sent, failed, cancelled or expired ones.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", help="At most so many; 0 for all.")
    ] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """All that was sent, to whom, when, with what result. Newest first."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            entries = _entries(app, channel, to, result, limit)
            if csv:
                await _write_csv(entries)
                return
            now = app.clock.now()
            columns = [
                Column("time", lambda row: row["at"], lambda row: output.away(row["at"], now)),
                Column(
                    "result", lambda row: row["result"], lambda row: output.state({"state": row["result"]})
                ),
                Column("channel", lambda row: row["channel"]),
                Column("to", lambda row: row["to"]),
                Column("tries", lambda row: row["tries"], right=True),
                Column("detail", lambda row: row["error"] or row["receipt"]),
                Column("text", lambda row: row["text"]),
                Column("id", lambda row: row["id"], keep=True),
            ]
            rows = [row async for row in entries]
            output.listing(rows, columns, as_json=as_json, nothing="nothing has been sent yet")

    engine.run(work())


async def _entries(
    app: App, channel: str | None, to: str | None, state: str | None, limit: int
) -> AsyncIterator[Row]:
    """Page by page, so that a log of any length takes the same memory."""
    after, left = None, limit or sys.maxsize
    while left:
        page = await app.messages.page(
            state=state, channel=channel, to=to, limit=min(left, 1000), after=after
        )
        for row in page.items:
            if row["state"] not in ("pending", "processing"):
                yield _entry(await app.messages.show(row["id"]))
                left -= 1
        after = page.next
        if after is None:
            return


def _entry(row: Row) -> Row:
    return {**{name: row.get(name) for name in _FIELDS}, "at": row["changed_at"], "result": row["state"]}


async def _write_csv(entries: AsyncIterator[Row]) -> None:
    from csv import DictWriter

    writer = DictWriter(sys.stdout, _FIELDS, lineterminator="\r\n")
    writer.writeheader()
    async for entry in entries:
        writer.writerow({name: _guarded(value) for name, value in entry.items()})


def _guarded(value: object) -> object:
    """A text that a spreadsheet would run as a formula is marked as text."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )
