"""What it costs to be seen: the drain with log, metrics and events, or without; calls with audit, or without.

    python -m bench.observability drain --url sqlite:////tmp/x.db --n 20000 --watched

Each run gives messages or calls per second (`per_s`), and what this process used of the CPU for one of them
(`cpu_us`), which says something even where others keep the machine busy.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson

from tidings.access.audit import AuditLog
from tidings.api import create_api
from tidings.app import build
from tidings.config import ChannelSettings, Settings
from tidings.model.task import OnUnknown
from tidings.observability.log import LogOptions, log_sink
from tidings.observability.metrics import Metrics

from .calls import serve
from .engine import Marking, engine
from .payload import content

KEY = "0123456789abcdef0123456789abcdef"
AT_ONCE = 50


async def drain(url: str, n: int, slots: int = 256, watched: bool = False) -> dict[str, float]:
    """n messages through claim, send and settle; `watched` as `tidings serve` is, at its default level."""
    sinks = (log_sink(LogOptions("json")), Metrics().take) if watched else ()
    channel = Marking(OnUnknown.RESEND)
    async with engine(url, channel, slots=slots, sinks=sinks) as ours:
        await ours.fill(n)
        await ours.tidy()
        cpu = time.process_time()
        ours.worker.start()
        await ours.until_settled(n)
        cpu = time.process_time() - cpu
        await ours.verify(n)
        assert channel.first is not None
        return {"per_s": round(n / (ours.last - channel.first), 1), "cpu_us": round(cpu / n * 1e6, 2)}


async def calls(url: str, n: int, audited: bool = False) -> dict[str, float]:
    """n messages accepted one by one through the API, 50 at a time, with audit or without."""
    app = build(Settings(database=url, api_keys=(KEY,), channels={"out": ChannelSettings("noop")}))
    await app.open()
    try:
        if not audited:
            app.access.audit.__class__ = _Deaf
        api = create_api(app)
        numbers = iter(range(n + AT_ONCE))

        async def work(most: int) -> None:
            for _, number in zip(range(most), numbers, strict=False):
                assert await _accept(api, number) == 201

        await asyncio.gather(*(work(1) for _ in range(AT_ONCE)))  # everything warm
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work(n // AT_ONCE) for _ in range(AT_ONCE)))
        await app.access.audit.close()
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        lines = await app.store.read("audit_page", tenant=None, actor=None, action=None, before=1 << 62, limit=1)
        assert bool(lines) is audited
    finally:
        await app.close()
    return {"per_s": round(n / took, 1), "cpu_us": round(cpu / n * 1e6, 2)}


class _Deaf(AuditLog):
    """Hears nothing."""

    def note_soon(self, *_: Any) -> None:
        """Not written down."""


async def _accept(api: Any, number: int) -> int:
    """One bare request: a client would cost more than the answer."""
    made = content(number)
    body = orjson.dumps({"channel": "out", "to": made["to"], "text": made["text"], "in": "1d"})
    scope = {
        "type": "http", "method": "POST", "path": "/v1/messages", "raw_path": b"/v1/messages",
        "query_string": b"", "headers": [(b"host", b"localhost"), (b"x-api-key", KEY.encode())],
        "client": ("127.0.0.1", 1), "scheme": "http", "http_version": "1.1", "server": ("localhost", 80),
    }  # fmt: skip
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await api(scope, receive, send)
    return status


if __name__ == "__main__":
    serve([drain, calls])
