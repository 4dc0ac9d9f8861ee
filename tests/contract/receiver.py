"""A real HTTP receiver on loopback that misbehaves on request.

Each request takes the next act of the script; when the script is over, the answer is 200. Whatever arrives is
kept, so that a test can say what was received and how often. No act sleeps: those that take time wait for the
other side to go away.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple

import orjson

_BOMB = gzip.compress(bytes(20_000_000), 6)  # made beforehand: in an act it would eat the sender's deadline


class Received(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return orjson.loads(self.body)


class Exchange(NamedTuple):
    """What an act may touch."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def write(self, data: bytes) -> None:
        """Write and wait until it has left."""
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self, within: float | None = None) -> None:
        """Wait until the sender hangs up, or for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.reader.read()


Act = Callable[[Exchange], Awaitable[None]]


class Receiver:
    """The receiver; made by `receiving()`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[Received] = []
        self.connections = 0
        self._script: deque[Act] = deque()

    def script(self, *acts: Act) -> None:
        """What to do with the next requests, one act each."""
        self._script.extend(acts)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                self.requests.append(await read_request(reader))
                act = self._script.popleft() if self._script else answer(200, b'{"receipt": "r-1"}')
                await act(Exchange(reader, writer))
                if writer.is_closing():
                    return


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a free port; at the end its connections are cut, whatever they are in the middle of."""
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(receiver.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    receiver = Receiver(server.sockets[0].getsockname()[1])
    try:
        yield receiver
    finally:
        server.close()
        ended = list(tasks)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> Received:
    """One request with a Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(head[0].split()[1], headers, body)


def answer(status: int, body: bytes = b"", **headers: str) -> Act:
    """A plain answer."""

    async def act(exchange: Exchange) -> None:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines = [f"HTTP/1.1 {status} ScriptedChannel", f"content-length: {len(body)}", *lines, "", ""]
        await exchange.write("\r\n".join(lines).encode() + body)

    return act


async def bad_header(exchange: Exchange) -> None:
    """A header's value that is no text."""
    await exchange.write(b"HTTP/1.1 429 ScriptedChannel\r\nretry-after: \xff\xfe\r\ncontent-length: 0\r\n\r\n")


async def cut(exchange: Exchange) -> None:
    """Take the request and cut the connection."""
    exchange.writer.transport.abort()


async def hang_up_in_head(exchange: Exchange) -> None:
    """Half a status line, then the end."""
    await exchange.write(b"HTTP/1.1 20")
    exchange.writer.close()


async def hang_up_in_body(exchange: Exchange) -> None:
    """A status line that says yes, and a body that breaks off."""
    await exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
    exchange.writer.close()


async def black_hole(exchange: Exchange) -> None:
    """Take the request and never say anything."""
    await exchange.gone()


async def head_only(exchange: Exchange) -> None:
    """A status line that says yes, and a body that never comes."""
    await exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
    await exchange.gone()


async def drip(exchange: Exchange) -> None:
    """A status line that says yes, and a body of one byte at a time."""
    await exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while not exchange.reader.at_eof():
        await exchange.write(b"x")
        await exchange.gone(within=0.02)


async def drip_head(exchange: Exchange) -> None:
    """A head that goes on for ever, one byte at a time."""
    await exchange.write(b"HTTP/1.1 200 OK\r\nx: ")
    while not exchange.reader.at_eof():
        await exchange.write(b"x")
        await exchange.gone(within=0.02)


async def endless(exchange: Exchange) -> None:
    """A status line that says yes, and a body without end."""
    await exchange.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await exchange.write(b"x" * 65_536)


async def bomb(exchange: Exchange) -> None:
    """A small answer that would be 20 MB if somebody unpacked it."""
    await answer(200, _BOMB, content_encoding="gzip")(exchange)


async def flood_of_1xx(exchange: Exchange) -> None:
    """Interim answers without end."""
    while not exchange.reader.at_eof():
        await exchange.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await exchange.gone(within=0.005)


async def no_http(exchange: Exchange) -> None:
    """Something else than HTTP."""
    await exchange.write(b"220 mail.example ESMTP\r\n\r\n")
    await exchange.gone()


@contextmanager
def refusing() -> Iterator[str]:
    """The URL of a port where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


@contextmanager
def silent() -> Iterator[str]:
    """The URL of a port that lets nobody in: its queue is full, so a connection is never made."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
