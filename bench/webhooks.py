"""The HTTP client under the webhook channel: alone, and with the channel but no engine around it."""

from __future__ import annotations

from .bare_client import bare_posts, channel_posts, receiver
from .calls import serve


async def bare_client(n: int, in_flight: int = 100) -> float:
    """Posts/s of the HTTP client alone to a loopback receiver."""
    with receiver() as base:
        return await bare_posts(f"{base}/hook", n, in_flight)


async def channel_alone(n: int, in_flight: int = 100) -> float:
    """Sends/s of the webhook channel without store or kernel."""
    with receiver() as base:
        return await channel_posts(f"{base}/hook", n, in_flight)


if __name__ == "__main__":
    serve([bare_client, channel_alone])
