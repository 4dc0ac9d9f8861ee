"""Metrics in Prometheus' form: what this process did, and what stands in the database."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ...access.permissions import SCRAPE, requires
from ...migration import job_metrics
from ...model.time import SECOND
from ...observability.metrics import CONTENT_TYPE, Metrics
from ...outbound.alerts.rules import AlertSeverity
from ...outbound.service import OutboundService
from ..bodies import ERROR_RESPONSES, response_content

MOST = 10_000  # counted up to here, for each priority of a channel


def routes(desk: OutboundService, metrics: Metrics) -> APIRouter:
    """The one route."""
    router = APIRouter(tags=["health"], responses=ERROR_RESPONSES)

    @router.get("/metrics", response_class=Response, responses=response_content("text/plain"))
    @requires(SCRAPE, whole=True)
    async def scrape() -> Response:
        """Everything that is counted; a scrape reads a bounded number of rows."""
        await _look(desk, metrics)
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router


async def _look(desk: OutboundService, metrics: Metrics) -> None:
    asked = desk.clock.monotonic()
    now: int = (await desk.store.read("now"))[0]["now"]
    answered = desk.clock.monotonic() - asked
    metrics.gauge("database_response_seconds", "How long the database took to answer.", {(): answered})
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
            ("unknown",): counts.unknown,
        },
        "state",
    )
    late = max([0, *(now - row["due_at"] for row in oldest if row["due_at"] is not None)]) / SECOND
    metrics.gauge("oldest_due_seconds", "How long the oldest due message waits.", {(): late})
    metrics.gauge("nodes_live", "Processes that work.", {(): live})
    metrics.gauge("clock_drift_seconds", "This clock and the database's.", {(): _drift(desk)})
    await _look_at_troubles(desk, metrics)
    await _look_at_migrations(desk, metrics)


async def _look_at_migrations(desk: OutboundService, metrics: Metrics) -> None:
    """The newest jobs and the systems that they call."""
    found = await job_metrics.read_metrics(desk.store)
    gauge = metrics.gauge
    gauge("migration_jobs", "Jobs by state, the newest ones.", found.jobs, "tenant", "state")
    gauge("migration_records", "Their records that are moved or set aside.", found.records, "tenant", "state")
    gauge("migration_errors", "What was set aside, by kind of error.", found.errors, "tenant", "kind")
    gauge("migration_records_per_minute", "How fast jobs are.", found.per_minute, "tenant")
    gauge("migration_job_seconds", "How long the newest finished job took.", found.seconds, "tenant")
    gauge("system_calls_this_month", "Calls of a system that are used up.", found.calls, "system")
    gauge("system_concurrency_limit", "Calls at once that a system bears.", found.at_once, "system")
    gauge("system_throttled", "1 while nobody calls a system.", found.parked, "system")


async def _look_at_troubles(desk: OutboundService, metrics: Metrics) -> None:
    """What the engine's own alerts look at, so that an outside watcher sees the same."""
    seen = await desk.alerts.figures.read()

    def whole(name: str, about: str, figure: str) -> None:
        metrics.gauge(name, about, {(): sum(reading.value for reading in seen[figure])})

    def each(name: str, about: str, figure: str, label: str) -> None:
        metrics.gauge(name, about, {(it.subject,): it.value for it in seen[figure]}, label)

    whole("scheduler_silent_seconds", "Since somebody last looked for due messages.", "silent_seconds")
    whole("messages_overdue", "Messages that should have started a minute ago.", "overdue")
    whole("missed_runs", "Schedules whose expected run did not happen.", "missed_runs")
    whole("stalled_jobs", "Migration jobs without progress for too long.", "stalled_jobs")
    each("worker_memory_ratio", "What a process uses of the memory it may have.", "memory_share", "node")
    each("channel_down", "1 while it sends nothing, and no person said so.", "stopped_channels", "channel")
    free = desk.alerts.figures.free()
    if free is not None:
        metrics.gauge("database_free_bytes", "Room under the database file.", {(): free})
    opened = await desk.alerts.open()
    severities: dict[tuple[str, ...], float] = {(str(one),): opened.get(one, 0) for one in AlertSeverity}
    metrics.gauge("alerts_open", "Alerts that are raised.", severities, "severity")


def _drift(desk: OutboundService) -> float:
    return desk.clock.drift().total_seconds()
