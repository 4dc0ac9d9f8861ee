"""Made-up bytes for whoever needs no key: headers, forms, inbound webhooks, call-backs, SMTP answers.

They are let loose on a real `tidings serve` for a while. Meanwhile somebody else asks for /health/ready all the
time: that answer must stay quick, the process must live, and its memory must not grow.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from .served import KEY, served, troubles

GROWTH = 50 << 20  # bytes
SLOWEST = 1.0  # seconds
_AT_ONCE = 6  # attackers
_PATIENCE = 15.0  # seconds for one answer to an attacker: longer than any limit of the server
_MAILS = 20  # one mail for so many looks
_CALM = 2.0  # seconds of looking before the attack, to know how busy the machine itself is


@dataclass
class Found:
    """What was seen."""

    calls: int = 0
    mails: int = 0
    slowest: float = 0.0
    calm: float = 0.0  # the slowest answer before the attack
    growth: int = 0  # bytes
    wrong: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What must not be. A machine that is slow without an attack gets as much more time."""
        limit = max(SLOWEST, 3 * self.calm)
        found = list(self.wrong)
        if self.slowest > limit:
            found.append(f"another caller waited {self.slowest:.2f} s (at most {limit:.2f} s)")
        if self.growth > GROWTH:
            found.append(f"memory grew by {self.growth >> 20} MiB")
        if not self.calls:
            found.append("nothing was called")
        return found


def memory(pid: int) -> int:
    """What a process has in memory, in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) << 10


# -- what is sent

_PATHS = (
    "/", "/health", "/sign-in", "/sign-out", "/inbound/crew", "/inbound/nobody", "/callbacks/phone",
    "/v1/messages", "/v1/channels", "/calendar.ics", "/docs", "/openapi.json", "/live", "/static/../..",
    "/%00", "/%ff%fe", "//", "*",
)  # fmt: skip
_NAMES = (
    "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "cookie",
    "authorization", "x-api-key", "webhook-id", "webhook-timestamp", "webhook-signature", "content-type",
    "accept", "origin", "sec-fetch-site", "x-forwarded-for", "x-request-id", "range", "if-none-match",
    "x-hub-signature-256",
)  # fmt: skip
_VALUES = (
    b"", b"close", b"chunked", b"100-continue", b"websocket", b"h2c", b"-1", b"99999999999999999999", b"0x10",
    b"localhost", b"text/html", b"application/json", b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=x", b"multipart/form-data", b"Bearer ", b"v1,", b"session=" + b"a" * 100,
    "ü".encode(), b"\xff\xfe", b"\x00", b"a\x0bb", b"v1,AAAA " * 500, b"1" * 5000,
)  # fmt: skip
_METHODS = (
    b"GET",
    b"POST",
    b"PUT",
    b"DELETE",
    b"HEAD",
    b"OPTIONS",
    b"PATCH",
    b"TRACE",
    b"CONNECT",
    b"PRI",
    b"\x16\x03",
)


def noise(chance: random.Random, most: int) -> bytes:
    """Any bytes."""
    return chance.randbytes(chance.randrange(most))


def raw_request(chance: random.Random) -> bytes:
    """A request that is nearly one."""
    lines = [
        b"%s %s HTTP/1.%d" % (chance.choice(_METHODS), chance.choice(_PATHS).encode(), chance.choice((0, 1, 1, 1, 7)))
    ]
    if chance.random() < 0.9:
        lines.append(b"host: localhost")
    for _ in range(chance.choice((0, 1, 3, 10, 2000))):
        lines.append(chance.choice(_NAMES).encode() + b": " + chance.choice((*_VALUES, noise(chance, 60))))
    request = b"\r\n".join(lines) + chance.choice((b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\r\n", b""))
    request += chance.choice((b"", noise(chance, 2000), b"5\r\nhello\r\n0\r\nx: y\r\n\r\n", b"ffffffff\r\n"))
    if chance.random() < 0.3:
        for _ in range(5):
            at = chance.randrange(len(request))
            request = request[:at] + chance.randbytes(1) + request[at + 1 :]
    return request * chance.choice((1, 1, 1, 20))


def huge_header(chance: random.Random) -> bytes:
    """More than a header may have."""
    size = chance.choice((70_000, 1_000_000, 8_000_000))
    return b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * size


def form(chance: random.Random) -> bytes:
    """A form for the sign-in."""
    fields = chance.choice((1, 3, 5000))
    body = b"&".join(
        b"%s=%s" % (chance.choice((b"key", b"next", b"%zz", b"k%00")), noise(chance, 30)) for _ in range(fields)
    )
    kind = b"application/x-www-form-urlencoded"
    if chance.random() < 0.3:
        kind = b"multipart/form-data; boundary=b"
        part = b'--b\r\ncontent-disposition: form-data; name="key"; filename="f"\r\n\r\n' + noise(chance, 200)
        body = part * chance.choice((1, 500)) + chance.choice((b"", b"\r\n--b--\r\n"))
    return _post(b"/sign-in", body, b"content-type: " + kind, chance)


def inbound(chance: random.Random) -> bytes:
    """A call of a source, or of a channel's provider, with a signature that cannot be right."""
    body = chance.choice((
        noise(chance, 3000), b"[" * 50_000, b'{"messages": []}',
        b'{"id": "1", "conversation": "c", "sender": "1"}',
        b'{"a":' * 3000, b'{"id": 1e999}', b'"\xed\xa0\x80"',
    ))  # fmt: skip
    at = chance.choice((0, int(time.time()), 10**18))
    signature = b"v1,%s " % noise(chance, 20).hex().encode() * chance.choice((1, 1000))
    named = b"webhook-id: m%d\r\nwebhook-timestamp: %d\r\nwebhook-signature: %s" % (
        chance.randrange(9), at, signature,
    )  # fmt: skip
    return _post(chance.choice((b"/inbound/crew", b"/callbacks/phone", b"/inbound/x")), body, named, chance)


def _post(path: bytes, body: bytes, named: bytes, chance: random.Random) -> bytes:
    length = len(body) + chance.choice((0, 0, 0, 5, -1))
    return b"POST %s HTTP/1.1\r\nhost: localhost\r\n%s\r\ncontent-length: %d\r\n\r\n%s" % (
        path,
        named,
        max(0, length),
        body,
    )


ATTACKS: tuple[Callable[[random.Random], bytes], ...] = (
    raw_request, raw_request, huge_header, form, inbound, lambda chance: noise(chance, 5000),
)  # fmt: skip


# -- who sends it


class Attack:
    """Everything at once against one address, for so many seconds."""

    def __init__(self, address: str, pid: int, seconds: float, seed: int) -> None:
        parts = urlsplit(address)
        assert parts.hostname and parts.port
        self._address, self._host, self._port = address, parts.hostname, parts.port
        self._pid = pid
        self._seconds = seconds
        self._seed = seed
        self._until = 0.0
        self.found = Found()

    async def run(self) -> Found:
        """Attack, and look on."""
        async with httpx.AsyncClient(base_url=self._address, timeout=60) as http:
            await self._watch(http, time.monotonic() + _CALM)
            self.found.calm, self.found.slowest = self.found.slowest, 0.0
            self._until = time.monotonic() + self._seconds
            before = memory(self._pid)
            await asyncio.gather(
                *(self._attack(random.Random(f"{self._seed}/{n}")) for n in range(_AT_ONCE)),
                self._watch(http, self._until),
            )
            self.found.growth = memory(self._pid) - before
        return self.found

    async def _attack(self, chance: random.Random) -> None:
        while time.monotonic() < self._until:
            request = chance.choice(ATTACKS)(chance)
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(min(_PATIENCE, self._until - time.monotonic() + 1)):
                    await self._call(request, chance)
            self.found.calls += 1

    async def _call(self, request: bytes, chance: random.Random) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            for first in range(0, len(request), piece := chance.choice((7 + len(request) // 20, 1 << 20))):
                writer.write(request[first : first + piece])
                await writer.drain()
            if chance.random() < 0.5:
                writer.write_eof()
            if chance.random() < 0.8:
                async with asyncio.timeout(0.5):
                    self._check(await reader.read(65_536))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _check(self, answer: bytes) -> None:
        if re.match(rb"HTTP/1\.1 500", answer) or b"Traceback" in answer:
            self.found.wrong.append(f"an attacker was told: {answer[:300]!r}")

    async def _watch(self, http: httpx.AsyncClient, until: float) -> None:
        """The other caller: asks how it is, and has a mail sent now and then."""
        for number in itertools.count():
            if time.monotonic() >= until:
                return
            if self._until and number % _MAILS == 0:
                await self._send_mail(http)
            began = time.monotonic()
            answer = await http.get("/health/ready")
            self.found.slowest = max(self.found.slowest, time.monotonic() - began)
            if answer.status_code != 200:
                self.found.wrong.append(f"another caller was told {answer.status_code}: {answer.text[:200]}")

    async def _send_mail(self, http: httpx.AsyncClient) -> None:
        """To a server that answers with noise; the engine itself must survive it."""
        body = {"channel": "post", "to": "ada@example.com", "text": "hello", "subject": "hi"}
        answer = await http.post("/v1/messages", json=body, headers={"x-api-key": KEY})
        if answer.status_code != 201:
            self.found.wrong.append(f"a mail was refused: {answer.text[:200]}")
        self.found.mails += 1


async def smtp_noise(seed: int) -> asyncio.Server:
    """A mail server that answers with anything."""
    chance = random.Random(seed)
    answers = (
        b"220 hello\r\n", b"250 ok\r\n", b"250-x\r\n", b"354 go\r\n", b"999 what\r\n", b"\r\n", b"2",
        b"421 later\r\n", b"550 no\r\n", b"250 " + b"a" * 100_000 + b"\r\n", b"250-a\r\n" * 5000, 
        b"\xff\xfe\x00\r\n", b"-1 x\r\n",
    )  # fmt: skip

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            writer.write(chance.choice((b"220 hello\r\n", *answers)))
            while await asyncio.wait_for(reader.readline(), 5):
                writer.write(chance.choice((b"250 ok\r\n", b"250 ok\r\n", *answers, noise(chance, 500))))
                await writer.drain()
                if chance.random() < 0.1:
                    break
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


MAIL = """
[channels.post]
kind = "email"
host = "127.0.0.1"
port = {port}
security = "none"
sender = "tidings@example.com"
deadline = "5s"
"""


async def attack(folder: Path, database: str, *, seconds: float, seed: int = 1) -> tuple[Found, list[str]]:
    """Start an engine, attack it, stop it; gives what was seen, and what the engine complained about."""
    mail = await smtp_noise(seed)
    async with mail:
        more = MAIL.format(port=mail.sockets[0].getsockname()[1])
        with served(folder, database, more) as running:
            found = await Attack(running.address("dashboard"), running.process.pid, seconds, seed).run()
            if await asyncio.to_thread(running.stop) != 0:
                found.wrong.append("it did not stop gracefully")
    expected = '"event":"alert_raised"'  # of the channel whose server answers with noise
    return found, [line for line in troubles(running.logged) if expected not in line]
