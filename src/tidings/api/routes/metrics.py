"""Metrics in Prometheus' form: what this process did, and what stands in the database (A9, B9)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ...model.time import SECOND
from ...observability.metrics import CONTENT_TYPE, Metrics
from ...outbound.desk import Desk

MOST = 10_000  # counted up to here, for each priority of a channel


def routes(desk: Desk, metrics: Metrics) -> APIRouter:
    """The one route."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def scrape() -> Response:
        """Everything that is counted; a scrape reads a bounded number of rows."""
        await _look(desk, metrics)
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router


async def _look(desk: Desk, metrics: Metrics) -> None:
    now: int = (await desk.store.read("now"))[0]["now"]
    due = {str(row["queue"]): int(row["due"]) for row in await desk.store.read("counts_due", most=MOST)}
    counts = await desk.overview.counts()
    oldest = await desk.store.read("oldest_due")
    live = sum(row["state"] == "live" for row in await desk.store.read("node_list"))
    metrics.gauge("scheduled_messages_due", "Messages that could start now.", {(): sum(due.values())})
    by_channel: dict[tuple[str, ...], float] = {(channel,): n for channel, n in due.items()}
    metrics.gauge("queue_depth", "The same by channel.", by_channel, "channel")
    metrics.gauge(
        "messages_by_state",
        "How much there is of each, counted up to a bound.",
        {
            ("waiting",): counts.waiting,
            ("processing",): counts.processing,
            ("failed",): counts.failed,
            ("held",): counts.held,
        },
        "state",
    )
    late = max([0, *(now - row["due_at"] for row in oldest if row["due_at"] is not None)]) / SECOND
    metrics.gauge("oldest_due_seconds", "How long the oldest due message waits.", {(): late})
    metrics.gauge("nodes_live", "Processes that work.", {(): live})
    metrics.gauge("clock_drift_seconds", "This clock and the database's.", {(): _drift(desk)})


def _drift(desk: Desk) -> float:
    return desk.clock.drift().total_seconds()
