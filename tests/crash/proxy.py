"""A proxy between one worker and its PostgreSQL, in a process of its own.

Stopped with SIGSTOP it is a black hole: nothing comes through, and nobody is told. Arguments: the server's
socket. It tells its port on standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(socket: str) -> None:
    """Pass everything on, both ways."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind = await asyncio.open_unix_connection(socket)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, behind[1]), _copy(behind[0], writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
