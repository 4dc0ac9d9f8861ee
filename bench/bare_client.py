"""How much our webhook channel costs over the bare HTTP client, on loopback.

Both POST the same number of bodies to `receiver.py` in its own process, in turns, and the receiver's counts
are checked, so that a rate is only printed for what has arrived.

    python bench/bare_client.py                 20,000 posts, 100 in flight, 5 rounds
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median

from pyreqwest.client import Client, ClientBuilder

from tidings.kernel.clock import SystemClock
from tidings.model.message import Message
from tidings.model.outcome import Done
from tidings.outbound.channels.webhook import WebhookChannel, WebhookSettings, body_of

SECRET = "whsec_" + b64encode(b"a secret only for benchmarks!!!!").decode()
DEADLINE = timedelta(seconds=15)
TEXT = "x" * 300  # with its envelope, a body of about 500 bytes


async def bare_posts(url: str, n: int, in_flight: int) -> float:
    """Posts per second of the client alone: fixed headers and body, answer read whole."""
    client = plain_client()
    body = body_of(message("bare", url))
    headers = {
        "content-type": "application/json",
        "webhook-id": "bare",
        "webhook-timestamp": "1700000000",
        "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    }

    async def post(_: int) -> None:
        answer = await client.post(url).headers(headers).body_bytes(body).build().send()
        assert answer.status == 200

    try:
        return await rate(post, n, in_flight)
    finally:
        await client.close()


async def channel_posts(url: str, n: int, in_flight: int) -> float:
    """Sends per second of the webhook channel: envelope, signature, guard, deadline, outcome."""
    settings = WebhookSettings(secrets=(SECRET,), allow_private=True, allow_http=True)
    channel = WebhookChannel(settings, now=SystemClock().now)

    async def send(number: int) -> None:
        outcome = await channel.send(message(f"m{number}", url))
        assert isinstance(outcome, Done), outcome

    try:
        return await rate(send, n, in_flight)
    finally:
        await channel.close()


def plain_client() -> Client:
    """The client as anybody would build it, with the same safety switches as ours."""
    builder = ClientBuilder().no_proxy().follow_redirects(False).timeout(DEADLINE)
    return builder.gzip(False).brotli(False).zstd(False).deflate(False).build()


def message(id_: str, url: str) -> Message:
    """A message of about 500 bytes."""
    content = {"text": TEXT, "subject": "bench"}
    return Message(id_, "default", "bench", url, content, 1_700_000_000_000_000)


async def rate(one: Callable[[int], Awaitable[None]], n: int, in_flight: int) -> float:
    """Calls per second with so many in flight, after a short warm-up that opens the connections."""
    await spread(one, range(2 * in_flight), in_flight)
    began = time.perf_counter()
    await spread(one, range(n), in_flight)
    return n / (time.perf_counter() - began)


async def spread(one: Callable[[int], Awaitable[None]], numbers: range, in_flight: int) -> None:
    """Share the calls among so many workers."""
    rest = iter(numbers)

    async def worker() -> None:
        for number in rest:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(in_flight)))


@contextmanager
def receiver() -> Iterator[str]:
    """The receiver's base URL, for as long as it runs."""
    script = Path(__file__).with_name("receiver.py")
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


async def counts(base: str) -> dict[str, int]:
    """What the receiver has seen since the last question."""
    client = plain_client()
    answer = await client.get(f"{base}/reset").build().send()
    await client.close()
    return dict(json.loads(bytes(await answer.bytes())))


async def compare(base: str, n: int, in_flight: int, rounds: int) -> dict[str, float]:
    """Both in turns; the ratio is that of the medians."""
    bare: list[float] = []
    ours: list[float] = []
    for _ in range(rounds):
        bare.append(await bare_posts(f"{base}/hook", n, in_flight))
        await counts(base)
        ours.append(await channel_posts(f"{base}/hook", n, in_flight))
        seen = await counts(base)
        assert seen == {"requests": n + 2 * in_flight, "unique_ids": max(n, 2 * in_flight)}, seen
        print(f"bare {bare[-1]:>8,.0f}/s   channel {ours[-1]:>8,.0f}/s", flush=True)
    return {
        "bare_per_s": round(median(bare)),
        "channel_per_s": round(median(ours)),
        "ratio": round(median(ours) / median(bare), 3),
    }


def main() -> None:
    """Read the options, run, print one JSON object as the last line."""
    import uvloop

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--n", type=int, default=20_000)
    options.add_argument("--in-flight", type=int, default=100)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with receiver() as base:
        print(json.dumps(uvloop.run(compare(base, chosen.n, chosen.in_flight, chosen.rounds))))


if __name__ == "__main__":
    main()
