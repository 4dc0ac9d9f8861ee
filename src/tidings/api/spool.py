"""A spool between a writer and a slower reader: in memory at first, then in a file without a name.

A caller may send its whole request before it reads the first line of the answer. If the answer could not be
put aside, both sides would wait for each other for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from tempfile import SpooledTemporaryFile

IN_MEMORY = 1 << 20
PIECE = 1 << 16


class Spool:
    """Written at one end, read at the other; both in one event loop."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  (closed with the reader)
        self._written = 0
        self._read = 0
        self._is_ended = False
        self._news = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Add to the end; never waits."""
        self._file.seek(self._written)
        self._file.write(data)
        self._written += len(data)
        self._news.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._is_ended = True
        self._news.set()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """All that was written, as it comes."""
        with self._file:
            while True:
                self._news.clear()
                if self._read < self._written:
                    yield self._next()
                elif self._is_ended:
                    return
                else:
                    await self._news.wait()

    def _next(self) -> bytes:
        self._file.seek(self._read)
        piece = self._file.read(PIECE)
        self._read += len(piece)
        if self._read == self._written:  # the reader keeps up: the space is used again
            self._read = self._written = 0
            self._file.seek(0)
            self._file.truncate()
        return piece
