"""A proxy between a worker and a service, in a process of its own.

Arguments: where to listen and what stands behind it, each HOST:PORT or the path of a socket. It says where it
listens on standard output, and takes commands on standard input, one a line:

    pass    everything goes through, both ways; so it begins
    mute    what is asked goes through, what is answered is lost
    drip    answers come a few bytes at a time
    cut     every connection is reset, and what comes then passes

Stopped with SIGSTOP it is a black hole: nothing comes through, and nobody is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
_DRIP, _EVERY = 16, 0.01  # bytes of an answer, and seconds between them
_RESET = struct.pack("ii", 1, 0)  # linger for no time: the other side sees a reset, not an end

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """The process, seen from a test."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().decode().strip()

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def say(self, command: str) -> None:
        """One of `pass`, `mute`, `drip`, `cut`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def proxy(listen: str, behind: str, *wrapper: str) -> Proxy:
    """Start one; `wrapper` is a command that starts it, such as one that puts it on another host."""
    command = [*wrapper, sys.executable, "-m", "tests.crash.proxy", listen, behind]
    return Proxy(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


class Switch:
    """What becomes of answers, and the connections there are."""

    def __init__(self) -> None:
        self.mode = "pass"
        self.open: set[asyncio.StreamWriter] = set()

    def turn(self, command: str) -> None:
        """Do what was said."""
        self.mode = "pass" if command == "cut" else command
        if command == "cut":
            for writer in self.open:
                with contextlib.suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()

    async def ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what is asked."""
        await _copy(reader, writer, lambda data: [data])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what is answered, in the way of the moment."""
        await _copy(reader, writer, self._pieces)

    def _pieces(self, data: bytes) -> list[bytes]:
        if self.mode == "mute":
            return []
        return [data] if self.mode == "pass" else [*_drops(data)]


def _drops(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _DRIP):
        yield data[start : start + _DRIP]


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pieces: Callable[[bytes], list[bytes]]
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            found = pieces(data)
            for piece in found:
                writer.write(piece)
                await writer.drain()
                if len(found) > 1:
                    await asyncio.sleep(_EVERY)
    writer.close()


async def _connect(address: str) -> Pair:
    if "/" in address:
        return await asyncio.open_unix_connection(address)
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def serve(listen: str, behind: str) -> None:
    """Pass things on until killed."""
    switch = Switch()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await _connect(behind)
        except OSError:
            writer.close()
            return
        ends = {writer, far[1]}
        switch.open |= ends
        try:
            await asyncio.gather(switch.ask(reader, far[1]), switch.answer(far[0], writer))
        finally:
            switch.open -= ends

    host, _, port = listen.rpartition(":")
    server = await (
        asyncio.start_unix_server(connected, listen)
        if "/" in listen
        else asyncio.start_server(connected, host, int(port))
    )

    def heard() -> None:
        said = os.read(sys.stdin.fileno(), 4096)  # as much as there is: nothing may stay behind in a buffer
        if not said:  # whoever started it is gone
            sys.exit()
        for command in said.decode().split():
            switch.turn(command)

    asyncio.get_running_loop().add_reader(sys.stdin, heard)
    name = server.sockets[0].getsockname()
    print(name if isinstance(name, str) else f"{name[0]}:{name[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
