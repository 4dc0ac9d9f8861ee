"""Health: for load balancers (live, ready) and for monitors.

Needs no key, so it tells neither secrets nor the names of hosts, processes and files.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter
from starlette.responses import Response

from ...access.permissions import OPEN, requires
from ...model.errors import TidingsError
from ...outbound.health import HealthStatus
from ...outbound.scheduler_health import check_scheduler_health
from ...outbound.service import OutboundService
from ..bodies import json_response

PATIENCE = 2.0  # seconds for the database's answer


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /health."""
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live")
    @requires(OPEN)
    async def live() -> Response:
        """This process runs."""
        return json_response({"status": "live"})

    @router.get("/ready", responses={503: {"description": "the database does not answer, or refuses writes"}})
    @requires(OPEN)
    async def ready() -> Response:
        """This process can accept messages."""
        problem = await _problem(desk)
        if problem is None:
            return json_response({"status": "ready"})
        return json_response({"status": "not ready", "reasons": [problem]}, 503)

    @router.get("", responses={503: {"description": "degraded or down, with reasons"}})
    @requires(OPEN)
    async def health() -> Response:
        """Whether work gets done, over all processes and the last fifteen minutes."""
        problem = await _problem(desk)
        if problem is not None:
            return json_response({"status": HealthStatus.DOWN, "reasons": [problem]}, 503)
        found = await desk.health()
        return json_response(asdict(found), 200 if found.status is HealthStatus.UP else 503)

    @router.get("/scheduler", responses={503: {"description": "silent, too deep or out of time"}})
    @requires(OPEN)
    async def scheduler() -> Response:
        """Whether somebody looks for due messages, keeps up, and knows the time."""
        problem = await _problem(desk)
        if problem is not None:
            return json_response({"healthy": False, "reasons": [problem]}, 503)
        found = await check_scheduler_health(desk.store, desk.clock)
        return json_response(asdict(found), 200 if found.healthy else 503)

    return router


async def _problem(desk: OutboundService) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            await desk.ping()
    except TidingsError:  # whose words may name hosts and files; the log has them
        return "the database does not answer"
    except TimeoutError:
        return f"the database did not answer within {PATIENCE:g} s"
    refusal = desk.store.writes.refusal
    return None if refusal is None else f"the database refuses writes: {refusal}"
