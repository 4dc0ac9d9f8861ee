"""A session that goes away with messages coming due: how soon all are out once it is back (E7).

    python -m bench.reconnect                          # 500 messages to 50 people, away for 20 s, SQLite
    python -m bench.reconnect --database postgres
    python -m bench.reconnect --server gateway --people 5 --away 5

The whole engine against the sandbox in a process of its own, over real HTTP. What is counted is the sandbox's
ledger. The bar: all out within 5 s of the reconnect, in order for each recipient, none lost, none twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

import httpx

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.model.message import Draft
from tidings.model.time import SECOND
from tidings.sandbox import read_ledger
from tidings.testing import PostgresCluster

BAR = 5.0  # seconds
CHANNEL = "whatsapp"


def main() -> None:
    """Run it once and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.reconnect")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--away", type=float, default=20.0)
    parser.add_argument("--server", choices=["waha", "gateway"], default="waha")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresCluster() if chosen.database == "postgres" else nullcontext()
        with server as cluster, sandbox(Path(folder) / "ledger.jsonl") as (url, ledger):
            database = f"sqlite:///{folder}/bench.db" if cluster is None else cluster.create_database("bench")
            figures = asyncio.run(measure(database, url, ledger, chosen))
    print(json.dumps(figures, indent=2))
    if figures["last_out_s"] > BAR or figures["out_of_order"] or figures["lost"] or figures["twice"]:
        sys.exit("the bar is missed")


@contextmanager
def sandbox(ledger: Path) -> Iterator[tuple[str, Path]]:
    """Run the simulated providers in a separate process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tidings.sandbox", "--port", str(port), "--ledger", str(ledger)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                httpx.get(f"http://127.0.0.1:{port}/waha/ping").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", ledger
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def engine(database: str, url: str, server: str) -> AsyncIterator[App]:
    """The whole engine with one channel, at work, its session connected."""
    options = {"server": server, "base_url": f"{url}/{server}", "api_key": "bench"}
    settings = Settings(
        database=database, channels={CHANNEL: ChannelSettings("whatsapp_session", options)}, sandbox=False
    )
    app = build(settings)
    await app.open()
    app.worker.start()
    try:
        while (await app.outbound.channels.one(CHANNEL))["session_state"] != "connected":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        yield app
    finally:
        await app.close()


async def measure(database: str, url: str, ledger: Path, chosen: argparse.Namespace) -> dict[str, float]:
    """Seconds after the reconnect at which messages arrived, and whether each got its own in order."""
    path = "/sandbox/waha/default" if chosen.server == "waha" else "/sandbox/gateway"
    field, state = ("status", "STARTING") if chosen.server == "waha" else ("connectionState", "OPENING")
    async with engine(database, url, chosen.server) as app, httpx.AsyncClient(base_url=url) as client:
        began = time.time()
        (await client.post(path, json={field: state, "for_seconds": chosen.away})).raise_for_status()
        back = time.time() + chosen.away
        gap = chosen.away / chosen.messages
        for n in range(chosen.messages):
            due = round((began + n * gap) * SECOND)
            await app.messages.accept(Draft(CHANNEL, f"+1555000{n % chosen.people:04d}", f"{n:06d}", at=due))
        async with asyncio.timeout(chosen.away + 60):
            while len(arrived := [e for e in read_ledger(ledger) if e.delivered]) < chosen.messages:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    late = sorted(entry.at / SECOND - back for entry in arrived)
    texts: dict[str, list[str]] = {}
    for entry in arrived:
        texts.setdefault(entry.to, []).append(entry.text)
    distinct = len({entry.text for entry in arrived})
    return {
        "messages": chosen.messages,
        "people": chosen.people,
        "away_s": chosen.away,
        "before_reconnect": sum(seconds < 0 for seconds in late),
        "first_out_s": round(late[0], 3),
        "median_out_s": round(late[len(late) // 2], 3),
        "last_out_s": round(late[-1], 3),
        "out_of_order": sum(said != sorted(said) for said in texts.values()),
        "lost": chosen.messages - distinct,
        "twice": len(arrived) - distinct,
    }


if __name__ == "__main__":
    main()
