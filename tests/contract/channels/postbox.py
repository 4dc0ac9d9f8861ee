"""A mail server that does as it is told, line by line, and keeps what it heard.

Each connection greets, answers each verb with the next of its replies (or the usual one), or does something
else instead: hang up, stay silent, talk nonsense.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

HANG_UP = "<hang up>"
SILENCE = "<silence>"
AFTER_PART = "<hang up in the middle of the mail>"

USUAL = {
    "GREETING": "220 mail.example ESMTP",
    "EHLO": "250-mail.example\r\n250-SIZE 10485760\r\n250 AUTH PLAIN LOGIN",
    "AUTH": "235 2.7.0 OK",
    "MAIL": "250 2.1.0 OK",
    "RCPT": "250 2.1.5 OK",
    "DATA": "354 Go on",
    "DOT": "250 2.0.0 Ok: queued as 4F1C",
    "RSET": "250 2.0.0 OK",
    "QUIT": "221 2.0.0 Bye",
}


class Postbox:
    """The server; made by `postbox()`."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.lines: list[str] = []  # commands, as they came
        self.mails: list[bytes] = []  # bodies, with their stuffing and without the dot
        self._replies: dict[str, list[str]] = {}

    def say(self, verb: str, *replies: str) -> None:
        """What to answer to the next of these verbs."""
        self._replies.setdefault(verb, []).extend(replies)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            if not await self._answer("GREETING", reader, writer):
                return
            while True:
                line = (await reader.readuntil(b"\r\n"))[:-2].decode()
                self.lines.append(line)
                verb = line.partition(" ")[0].upper()
                if not await self._answer(verb, reader, writer):
                    return
                if verb == "DATA" and not await self._take(reader, writer):
                    return

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if self._replies.get("DOT", [""])[0] == AFTER_PART:
            await reader.readuntil(b"\r\n")
            writer.transport.abort()
            return False
        body = b""
        while (line := await reader.readuntil(b"\r\n")) != b".\r\n":
            body += line
        self.mails.append(body)
        return await self._answer("DOT", reader, writer)

    async def _answer(self, verb: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        replies = self._replies.get(verb)
        reply = replies.pop(0) if replies else USUAL.get(verb, "502 5.5.2 What?")
        if reply == HANG_UP:
            writer.transport.abort()
            return False
        if reply == SILENCE:
            await reader.read()
            return False
        writer.write(f"{reply}\r\n".encode())
        await writer.drain()
        return True


@asynccontextmanager
async def postbox() -> AsyncIterator[Postbox]:
    """A postbox on a free port; at the end its connections are cut."""
    box, tasks = Postbox(), set[asyncio.Task[None]]()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(box.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        ended = list(tasks)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
