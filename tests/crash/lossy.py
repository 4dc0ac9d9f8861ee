"""A line that loses packets: a relay whose kernel drops a share of what arrives, before TCP has seen it.

A classic filter on the listening socket, which every accepted one inherits, asks the kernel for chance. What
it drops was lost as far as both ends can tell: it is sent again, later, or never. Linux only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
import sys
from collections.abc import AsyncIterator

IS_POSSIBLE = sys.platform == "linux"

_ATTACH_FILTER = 26
_RANDOM = 0xFFFFF000 + 56  # where a filter finds a random word
_LOAD, _SKIP_IF_AT_LEAST, _RETURN = 0x20, 0x35, 0x06
_EVERYTHING = 0xFFFFFFFF


class Line:
    """Where senders connect to, and how bad it is at the moment."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.port: int = listening.getsockname()[1]
        self.accepted: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    def lose(self, share: float) -> None:
        """This share of what arrives is lost from now on; 1 is a dead line."""
        for one in (self._listening, *(writer.get_extra_info("socket") for writer in self.accepted)):
            _attach(one, share)


def _attach(one: socket.socket, share: float) -> None:
    lost = min(round(share * (1 << 32)), _EVERYTHING)
    steps = [(_LOAD, 0, _RANDOM), (_SKIP_IF_AT_LEAST, 1, lost), (_RETURN, 0, 0), (_RETURN, 0, _EVERYTHING)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", op, yes, 0, k) for op, yes, k in steps))
    one.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))


@contextlib.asynccontextmanager
async def lossy(behind: int) -> AsyncIterator[Line]:
    """Yield a line to a port of this machine.

    At the end the line is cut: the receiver has read all that the line had accepted, and what still waits in
    the kernel of a sender, to be retransmitted, never arrives.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    line = Line(listening)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if not server.is_serving():
            writer.transport.abort()
            return
        line.accepted[writer] = task
        try:
            far = await asyncio.open_connection("127.0.0.1", behind)
            await asyncio.gather(_copy(reader, far[1]), _copy(far[0], writer))
            far[1].close()
        finally:
            writer.close()
            del line.accepted[writer]

    server = await asyncio.start_server(connected, sock=listening)
    try:
        yield line
    finally:
        server.close()
        tasks = list(line.accepted.values())
        for writer in line.accepted:
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on everything and then the end, so that the other side's own end says that it has read it all."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
