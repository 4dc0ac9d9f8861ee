"""What takes long, as it goes: a line for each thing when it is found, the result as the last line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson

from ..migration import serializers
from ..migration.service import MigrationService
from ..model.errors import TidingsError, error_text

_END = b""
_MOST_WAITING = 1000  # lines that a slow reader may leave; further ones are counted only

Tell = Callable[[object], None]


async def stream_verification(migrations: MigrationService, id_: str) -> AsyncIterator[bytes]:
    """A verification: every difference, then the report."""

    async def verify(tell: Tell) -> dict[str, Any]:
        report = await migrations.verify(id_, tell=lambda one: tell({"difference": one.plainly()}))
        return {"report": report.plainly()}

    async for line in _lines(verify, "verify it again"):
        yield line


async def stream_undo(
    migrations: MigrationService, id_: str, *, by: str, dry_run: bool
) -> AsyncIterator[bytes]:
    """An undoing: every record with its fate, then how many had which."""

    async def undo(tell: Tell) -> dict[str, Any]:
        counts = await migrations.undo(
            id_, by=by, dry_run=dry_run, tell=lambda one: tell({"record": serializers.undone_record(one)})
        )
        return {"undone": {"id": id_, "dry_run": dry_run, "counts": {str(k): n for k, n in counts.items()}}}

    async for line in _lines(undo, "undo it again: it goes on"):
        yield line


async def _lines(work: Callable[[Tell], Awaitable[dict[str, Any]]], again: str) -> AsyncIterator[bytes]:
    """NDJSON; whoever stops reading stops the work."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    not_told = 0

    def tell(found: object) -> None:
        nonlocal not_told
        if lines.qsize() < _MOST_WAITING:
            lines.put_nowait(_line(found))
        else:
            not_told += 1

    async def run() -> None:
        try:
            result = await work(tell)
            lines.put_nowait(_line({**result, "omitted": not_told}))
        except TidingsError as error:
            lines.put_nowait(_line({"error": {"problem": error.problem, "remedy": error.remedy}}))
        except Exception as error:  # the answer has begun: its last line must say that it is not whole
            lines.put_nowait(_line({"error": {"problem": error_text(error), "remedy": again}}))
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
