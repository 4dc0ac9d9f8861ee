"""create_metrics_application: metrics and probes of one process on a port of their own, without a key.

Every role can have it, also a transport, which has no database. Restrict access to the port by the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..model.errors import TidingsError
from ..observability.metrics import CONTENT_TYPE, Metrics
from .bodies import json_response

Check = Callable[[], Awaitable[str | None]]
Gauges = Callable[[], Awaitable[None]]
_READ_TIMEOUT = 5.0  # seconds; Prometheus waits 10 by default


def create_metrics_application(metrics: Metrics, checks: Sequence[Check], gauges: Gauges | None) -> Starlette:
    """Return an application with /metrics, /health/live and /health/ready.

    `checks` return why the process is not ready, or None; both sequences are read at each request.
    `gauges` reads those of the database into `metrics`. If it fails, the counters are returned alone.
    """

    async def live(_: Request) -> Response:
        return json_response({"status": "live"})

    async def ready(_: Request) -> Response:
        reasons = [reason for check in checks if (reason := await check()) is not None]
        return json_response({"status": "not ready", "reasons": reasons} if reasons else {"status": "ready"},
                             503 if reasons else 200)  # fmt: skip

    async def scrape(_: Request) -> Response:
        await refresh_gauges(metrics, gauges)
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", scrape), Route("/health/live", live), Route("/health/ready", ready)])


async def refresh_gauges(metrics: Metrics, gauges: Gauges | None) -> None:
    """Read the gauges of the database; remove them if that fails."""
    if gauges is not None:
        try:
            async with asyncio.timeout(_READ_TIMEOUT):
                await gauges()
        except (TidingsError, TimeoutError):
            metrics.forget_gauges()
