"""Health: for load balancers (live, ready) and for monitors.

Needs no key, so it tells neither secrets nor the names of hosts, processes and files.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter
from starlette.responses import Response

from ...access.rules import OPEN, allowed
from ...model.errors import TidingsError
from ...outbound.desk import Desk
from ...outbound.health import Status
from ...outbound.pulse import pulse
from ..bodies import answer

PATIENCE = 2.0  # seconds for the database's answer


def routes(desk: Desk) -> APIRouter:
    """Everything under /health."""
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live")
    @allowed(OPEN)
    async def live() -> Response:
        """This process runs."""
        return answer({"status": "live"})

    @router.get("/ready", responses={503: {"description": "the database does not answer, or refuses writes"}})
    @allowed(OPEN)
    async def ready() -> Response:
        """This process can accept messages."""
        problem = await _problem(desk)
        if problem is None:
            return answer({"status": "ready"})
        return answer({"status": "not ready", "reasons": [problem]}, 503)

    @router.get("", responses={503: {"description": "degraded or down, with reasons"}})
    @allowed(OPEN)
    async def health() -> Response:
        """Whether work gets done, over all processes and the last fifteen minutes."""
        problem = await _problem(desk)
        if problem is not None:
            return answer({"status": Status.DOWN, "reasons": [problem]}, 503)
        found = await desk.health()
        return answer(asdict(found), 200 if found.status is Status.UP else 503)

    @router.get("/scheduler", responses={503: {"description": "silent, too deep or out of time"}})
    @allowed(OPEN)
    async def scheduler() -> Response:
        """Whether somebody looks for due messages, keeps up, and knows the time."""
        problem = await _problem(desk)
        if problem is not None:
            return answer({"healthy": False, "reasons": [problem]}, 503)
        found = await pulse(desk.store, desk.clock)
        return answer(asdict(found), 200 if found.healthy else 503)

    return router


async def _problem(desk: Desk) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            await desk.ping()
    except TidingsError:  # whose words may name hosts and files; the log has them
        return "the database does not answer"
    except TimeoutError:
        return f"the database did not answer within {PATIENCE:g} s"
    refusal = desk.store.writes.refusal
    return None if refusal is None else f"the database refuses writes: {refusal}"
