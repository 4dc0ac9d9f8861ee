"""A verification as it goes: a line for each difference when it is found, the report as the last line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson

from ..migration.desk import Migrations
from ..migration.report import Difference
from ..model.errors import TidingsError, told

_END = b""
_MOST_WAITING = 1000  # lines that a slow reader may leave; further ones are counted only


async def differences(migrations: Migrations, id_: str) -> AsyncIterator[bytes]:
    """NDJSON; whoever stops reading stops the verification."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    not_told = 0

    def tell(difference: Difference) -> None:
        nonlocal not_told
        if lines.qsize() < _MOST_WAITING:
            lines.put_nowait(_line({"difference": difference.plainly()}))
        else:
            not_told += 1

    async def verify() -> None:
        try:
            report = await migrations.verify(id_, tell=tell)
            lines.put_nowait(_line({"report": report.plainly(), "not_told": not_told}))
        except TidingsError as error:
            lines.put_nowait(_line({"error": {"problem": error.problem, "remedy": error.remedy}}))
        except Exception as error:  # the answer has begun: its last line must say that it is not whole
            lines.put_nowait(_line({"error": {"problem": told(error), "remedy": "verify it again"}}))
        finally:
            lines.put_nowait(_END)

    work = asyncio.create_task(verify())
    try:
        while line := await lines.get():
            yield line
    finally:
        work.cancel()


def _line(value: object) -> bytes:
    return orjson.dumps(value, default=str) + b"\n"
