"""The engine inside a web application: five lines make it one, and what it promised survives a stop.

The application takes orders; each order is confirmed by a message. It is stopped before the message is due,
started again, and the message goes out: once, although the order was placed twice with the same key.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from tidings import Engine

# -- the five lines: an engine, an application that opens and closes it, and a route that sends


def application(database: str) -> tuple[FastAPI, Engine]:
    """A shop that confirms orders."""
    engine = Engine(database=database, log_level="error")
    app = FastAPI(lifespan=engine.lifespan)

    @app.post("/orders/{number}")
    async def order(number: str, to: str) -> Any:
        return await engine.send("console", to, f"Order {number}: thank you", in_="3 s", key=f"order-{number}")

    return app, engine


# -- the rest shows that it is true


async def main() -> int:
    """0 when the message went out once, after the application had been stopped and started again."""
    with tempfile.TemporaryDirectory(prefix="embedded-") as place:
        os.chdir(place)  # no tidings.toml of somebody else
        database = f"sqlite:///{Path(place)}/shop.db"
        app, engine = application(database)
        async with served(app) as address:
            placed = [await post(f"{address}/orders/1001?to=ada") for _ in range(2)]
        print(f"Two calls, one message: {placed[0]['id'] == placed[1]['id']}; the application has stopped.")

        app, engine = application(database)
        async with served(app) as address:
            sent = await asyncio.wait_for(engine.wait(placed[0]["id"]), 30)
            everything = (await engine.outbound.messages.page()).items
        print(f"Started again: {sent['state']} on attempt {sent['attempts']}; {len(everything)} message in all.")
        return 0 if sent["state"] == "sent" and len(everything) == 1 else 1


class served:
    """The application on a free port of this machine, until the block ends."""

    def __init__(self, app: FastAPI) -> None:
        self._server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", access_log=False))

    async def __aenter__(self) -> str:
        self._serving = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.02)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._serving


async def post(url: str) -> Any:
    """Call it as anybody would."""

    def call() -> Any:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10) as answer:
            return json.load(answer)

    return await asyncio.to_thread(call)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
