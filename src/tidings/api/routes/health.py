"""Health checks: liveness and readiness for load balancers, health and scheduler health for monitoring.

They need no key, so they reveal neither secrets nor names of hosts, processes and files.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter
from starlette.responses import Response

from ...access.permissions import OPEN, requires
from ...model.errors import TidingsError
from ...outbound.health import HealthStatus
from ...outbound.service import OutboundService
from ..bodies import json_response

PING_TIMEOUT = 2.0  # seconds


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /health."""
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live")
    @requires(OPEN)
    async def live() -> Response:
        """Liveness: this process is running."""
        return json_response({"status": "live"})

    @router.get("/ready", responses={503: {"description": "The database is unavailable or read-only."}})
    @requires(OPEN)
    async def ready() -> Response:
        """Readiness: this process can accept messages."""
        problem = await readiness_problem(outbound)
        if problem is None:
            return json_response({"status": "ready"})
        return json_response({"status": "not ready", "reasons": [problem]}, 503)

    @router.get("", responses={503: {"description": "Degraded or down, with reasons."}})
    @requires(OPEN)
    async def health() -> Response:
        """Health of the whole engine over the last fifteen minutes."""
        problem = await readiness_problem(outbound)
        if problem is not None:
            return json_response({"status": HealthStatus.DOWN, "reasons": [problem]}, 503)
        found = await outbound.health()
        return json_response(asdict(found), 200 if found.status is HealthStatus.UP else 503)

    @router.get("/scheduler", responses={503: {"description": "The scheduler is silent or late."}})
    @requires(OPEN)
    async def scheduler() -> Response:
        """Health of the scheduler: whether due messages are claimed in time and the clock is right."""
        problem = await readiness_problem(outbound)
        if problem is not None:
            return json_response({"healthy": False, "reasons": [problem]}, 503)
        found = await outbound.scheduler_health()
        return json_response(asdict(found), 200 if found.healthy else 503)

    return router


async def readiness_problem(outbound: OutboundService) -> str | None:
    """Return why messages cannot be accepted or claimed now, or None."""
    try:
        async with asyncio.timeout(PING_TIMEOUT):
            await outbound.ping()
    except TidingsError:  # its text may name hosts and files; the log has it
        return "the database does not answer"
    except TimeoutError:
        return f"the database did not answer within {PING_TIMEOUT:g} s"
    refusal = outbound.store.writes.refusal
    return None if refusal is None else f"the database refuses writes: {refusal}"
