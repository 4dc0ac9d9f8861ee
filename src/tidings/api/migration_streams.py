"""Verification and undo of a migration as NDJSON: one line per finding, then the result as the last line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson

from ..migration import serializers
from ..migration.service import MigrationService
from ..model.errors import TidingsError, error_text

_END = b""
_MAX_BUFFERED = 1000  # lines buffered for a slow reader; more are counted and dropped

Report = Callable[[object], None]


async def stream_verification(migrations: MigrationService, id_: str) -> AsyncIterator[bytes]:
    """Yield every difference, then the report."""

    async def verify(report: Report) -> dict[str, Any]:
        result = await migrations.verify(id_, tell=lambda one: report({"difference": one.plainly()}))
        return {"report": result.plainly()}

    async for line in _lines(verify, "run the verification again"):
        yield line


async def stream_undo(migrations: MigrationService, id_: str, *, by: str, dry_run: bool) -> AsyncIterator[bytes]:
    """Yield every record with its result, then the counts."""

    async def undo(report: Report) -> dict[str, Any]:
        counts = await migrations.undo(
            id_, by=by, dry_run=dry_run, tell=lambda one: report({"record": serializers.undone_record(one)})
        )
        return {"undone": {"id": id_, "dry_run": dry_run, "counts": {str(k): n for k, n in counts.items()}}}

    async for line in _lines(undo, "run the undo again; it continues"):
        yield line


async def _lines(work: Callable[[Report], Awaitable[dict[str, Any]]], remedy: str) -> AsyncIterator[bytes]:
    """Run the work and yield its lines; the work is cancelled when the reader stops."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    omitted = 0

    def report(found: object) -> None:
        nonlocal omitted
        if lines.qsize() < _MAX_BUFFERED:
            lines.put_nowait(_line(found))
        else:
            omitted += 1

    async def run() -> None:
        try:
            result = await work(report)
            lines.put_nowait(_line({**result, "omitted": omitted}))
        except TidingsError as error:
            lines.put_nowait(_line({"error": {"problem": error.problem, "remedy": error.remedy}}))
        except Exception as error:  # the response has started, so its last line reports the error
            lines.put_nowait(_line({"error": {"problem": error_text(error), "remedy": remedy}}))
        finally:
            lines.put_nowait(_END)

    task = asyncio.create_task(run())
    try:
        while line := await lines.get():
            yield line
    finally:
        task.cancel()


def _line(value: object) -> bytes:
    return orjson.dumps(value, default=str) + b"\n"
