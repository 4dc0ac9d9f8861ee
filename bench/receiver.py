"""A loopback receiver of webhooks that costs as little as possible, run as its own process.

It answers every POST with 200 and counts requests and distinct `webhook-id` values, so that a benchmark can
check that what was sent did arrive. `GET /stats` gives the counts as JSON, `GET /reset` clears them first.

    python bench/receiver.py --port 8099        prints the port it listens on, then works until it is ended
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
END = b"\r\n\r\n"


@dataclass(slots=True)
class Counts:
    """What has arrived so far."""

    requests: int = 0
    ids: set[bytes] = field(default_factory=set)

    def as_json(self) -> bytes:
        """The counts as one JSON object."""
        return json.dumps({"requests": self.requests, "unique_ids": len(self.ids)}).encode()

    def clear(self) -> None:
        """Begin again at nothing."""
        self.requests = 0
        self.ids.clear()


class Receiver(asyncio.Protocol):
    """One connection: cuts requests out of the bytes and answers each at once."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._bytes = b""
        self._write: Callable[[bytes], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._write = cast(asyncio.Transport, transport).write  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole; keep the rest for later."""
        self._bytes = self._bytes + data if self._bytes else data
        while (end := self._bytes.find(END)) >= 0:
            head = self._bytes[:end]
            whole = end + 4 + int(header(head, b"content-length") or 0)
            if len(self._bytes) < whole:
                return
            self._bytes = self._bytes[whole:]
            self._write(self._answer(head))

    def _answer(self, head: bytes) -> bytes:
        if head.startswith(b"POST"):
            self._counts.requests += 1
            if (id_ := header(head, b"webhook-id")) is not None:
                self._counts.ids.add(id_)
            return ANSWER
        body = self._counts.as_json()
        if head.startswith(b"GET /reset"):
            self._counts.clear()
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def header(head: bytes, name: bytes) -> bytes | None:
    """One header's value out of the raw head of a request, without parsing the others."""
    lower = head.lower()
    at = lower.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else len(head)].strip()


async def serve(host: str, port: int) -> None:
    """Listen until the process is ended; print the port, which port 0 leaves to the system."""
    counts = Counts()
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(counts), host, port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the options and serve on uvloop."""
    import uvloop

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=0)
    chosen = options.parse_args()
    uvloop.run(serve(chosen.host, chosen.port))


if __name__ == "__main__":
    main()
