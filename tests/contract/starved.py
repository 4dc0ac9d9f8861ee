"""A process that runs out of descriptors between two messages, and has some again. Argument: the URL."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidings.model.message import Message
from tidings.outbound.channels.registry import build

MESSAGE = Message("1", "default", "hook", "ada", {"text": "hello"}, 0)


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Every one that the limit allows is in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/dev/fd"))) + 5, hard))
    held = []
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def main(url: str) -> None:
    """Print what came of each: everything is loaded with the first, which leaves no connection behind."""
    channel = build("hook", "sandbox", {"url": url, "deadline": "10s"})
    outcomes = [await channel.send(MESSAGE)]
    with no_descriptors():
        outcomes.append(await channel.send(MESSAGE))
    outcomes.append(await channel.send(MESSAGE))
    await channel.close()
    print(json.dumps([type(outcome).__name__ for outcome in outcomes]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
