"""Buffer between a fast writer and a slow reader: in memory up to 1 MiB, then in a temporary file.

A client may send its whole request before it reads the response. Without a buffer both sides would deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from tempfile import SpooledTemporaryFile

IN_MEMORY = 1 << 20
CHUNK = 1 << 16


class Spool:
    """A buffer with one writer and one reader in the same event loop."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  (closed by the reader)
        self._written = 0
        self._read = 0
        self._is_ended = False
        self._changed = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Append data; never blocks."""
        self._file.seek(self._written)
        self._file.write(data)
        self._written += len(data)
        self._changed.set()

    def end(self) -> None:
        """Mark the end of the data."""
        self._is_ended = True
        self._changed.set()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the data as it is written, until its end."""
        with self._file:
            while True:
                self._changed.clear()
                if self._read < self._written:
                    yield self._next()
                elif self._is_ended:
                    return
                else:
                    await self._changed.wait()

    def _next(self) -> bytes:
        self._file.seek(self._read)
        chunk = self._file.read(CHUNK)
        self._read += len(chunk)
        if self._read == self._written:  # the reader has caught up: reuse the space
            self._read = self._written = 0
            self._file.seek(0)
            self._file.truncate()
        return chunk
