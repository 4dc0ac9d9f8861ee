"""The HTTP receiver of a drill, in a separate process.

It logs one line per request with a single O_APPEND write before it answers, so its log is the truth about
what arrived, whichever process dies. Senders identify themselves in the path: /from/<pid>/…
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from typing import Any

import orjson

from .json_log import JsonLog
from .parent_watch import end_with_parent

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b"
_REFUSAL = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"


class ReceiverBehavior:
    """How requests are answered: the delay, and the share that is refused, dropped or answered too late.

    Only the first copy of a message meets a fault, so that every message succeeds eventually.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._delay: tuple[float, float] = tuple(options.get("delay", (0.0, 0.02)))
        self._shares = {did: options.get(did, 0.0) for did in ("refused", "dropped", "late")}
        self._late_by: float = options.get("late_by", 3.0)
        self._random = random.Random(options.get("seed", 0))
        self._met: set[str] = set()

    def choose(self, ref: str) -> tuple[str, float]:
        """Return what to do with this copy, and after how many seconds."""
        first = ref not in self._met
        self._met.add(ref)
        dice = self._random.random()
        for did, share in self._shares.items():
            if first and dice < share:
                return did, self._late_by if did == "late" else 0.0
            dice -= share
        return "ok", self._random.uniform(*self._delay)


class DrillReceiver(asyncio.Protocol):
    """One connection; its requests are handled in order."""

    def __init__(self, journal: JsonLog, behavior: ReceiverBehavior) -> None:
        self._journal = journal
        self._manners = behavior
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._take(int(head.partition(b"/from/")[2].partition(b"/")[0]), orjson.loads(body))

    def _take(self, pid: int, message: dict[str, Any]) -> None:
        did, after = self._manners.choose(message["to"])
        at = time.time()
        self._journal.write({
            "at": at, "ref": message["to"], "id": message["id"], "attempt": message["attempt"], "pid": pid,
            "digest": digest(message["text"]), "did": did, "after": after,
        })  # fmt: skip
        # Every other fifth of a second answers carry a receipt, so that both code paths of settling run.
        said = b'{"receipt": "r"}' if int(at * 5) % 2 else b"{}"
        answer = _REFUSAL if did == "refused" else _ANSWER % (len(said), said)
        asyncio.get_running_loop().call_later(after, self._answer, did, answer)

    def _answer(self, did: str, answer: bytes) -> None:
        assert self._transport is not None
        if did == "dropped":
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.write(answer)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def serve(options: dict[str, Any]) -> None:
    """Listen on a free port, print it, and serve until killed."""
    journal, behavior = JsonLog(options["log"]), ReceiverBehavior(options)
    server = await asyncio.get_running_loop().create_server(
        lambda: DrillReceiver(journal, behavior), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    end_with_parent()
    asyncio.run(serve(json.loads(sys.argv[1])))
