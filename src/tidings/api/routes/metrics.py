"""Prometheus metrics: counters of this process, and gauges read from the database."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import Response

from ...access.permissions import SCRAPE, requires
from ...migration import job_metrics
from ...model.time import SECOND
from ...observability.metrics import CONTENT_TYPE, Metrics
from ...outbound.alerts.rules import AlertSeverity
from ...outbound.service import OutboundService
from ...store.port import Row
from ..openapi_responses import ERROR_RESPONSES, response_content

MAX_COUNTED = 10_000  # per channel and priority


def routes(outbound: OutboundService, metrics: Metrics) -> APIRouter:
    """Return the route /metrics."""
    router = APIRouter(tags=["health"], responses=ERROR_RESPONSES)

    @router.get("/metrics", response_class=Response, responses=response_content("text/plain"))
    @requires(SCRAPE, engine_wide=True)
    async def scrape() -> Response:
        """Return all metrics in the Prometheus text format. A scrape reads a bounded number of rows."""
        await read_gauges(outbound, metrics)
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router


async def read_gauges(outbound: OutboundService, metrics: Metrics) -> None:
    """Read the gauges of the database."""
    asked = outbound.clock.monotonic()
    now: int = (await outbound.store.read("now"))[0]["now"]
    answered = outbound.clock.monotonic() - asked
    metrics.gauge("database_response_seconds", "Response time of the database.", {(): answered})
    due = {str(row["queue"]): int(row["due"]) for row in await outbound.store.read("counts_due", most=MAX_COUNTED)}
    counts = await outbound.overview.counts()
    oldest = await outbound.store.read("oldest_due")
    live = [row for row in await outbound.overview.nodes() if row["state"] == "live"]
    metrics.gauge("scheduled_messages_due", "Messages that are due.", {(): sum(due.values())})
    by_channel: dict[tuple[str, ...], float] = {(channel,): n for channel, n in due.items()}
    metrics.gauge("queue_depth", "Due messages by channel.", by_channel, "channel")
    metrics.gauge(
        "messages_by_state",
        "Messages by state, counted up to a limit.",
        {
            ("waiting",): counts.waiting,
            ("processing",): counts.processing,
            ("failed",): counts.failed,
            ("unknown",): counts.unknown,
        },
        "state",
    )
    late = max([0, *(now - row["due_at"] for row in oldest if row["due_at"] is not None)]) / SECOND
    metrics.gauge("oldest_due_seconds", "Waiting time of the oldest due message.", {(): late})
    metrics.gauge("nodes_live", "Live nodes.", {(): len(live)})
    _set_node_gauges(metrics, live)
    metrics.gauge("clock_drift_seconds", "Difference between the local and the database clock.", {(): _drift(outbound)})
    for row in await outbound.store.read("database_connections"):
        metrics.gauge("database_connections", "Open connections to the database.", {(): row["open"]})
        metrics.gauge("database_connections_max", "Connections that the server allows.", {(): row["allowed"]})
    await _read_alert_inputs(outbound, metrics)
    await _read_migrations(outbound, metrics)


def _set_node_gauges(metrics: Metrics, nodes: Sequence[Row]) -> None:
    """Set the figures that each node reports with its heartbeats."""
    loads = {row["name"]: row["load"] for row in nodes}
    cpu: dict[tuple[str, ...], float] = {(name,): load["cpu"] for name, load in loads.items() if "cpu" in load}
    metrics.gauge("worker_cpu_ratio", "Share of one core that a process uses.", cpu, "node")
    durations: dict[tuple[str, ...], float] = {
        (name, percentile): ms / 1000
        for name, load in loads.items()
        for percentile, ms in load.get("durations_ms", {}).items()
    }
    about = "Duration of the latest attempts of a process, p50, p95 and p99."
    metrics.gauge("worker_attempt_seconds", about, durations, "node", "percentile")


async def _read_migrations(outbound: OutboundService, metrics: Metrics) -> None:
    """Read the metrics of the latest migration jobs and the systems that they call."""
    found = await job_metrics.read_metrics(outbound.store)
    gauge = metrics.gauge
    gauge("migration_jobs", "Latest migration jobs by state.", found.jobs, "tenant", "state")
    gauge("migration_records", "Records of these jobs by state.", found.records, "tenant", "state")
    gauge("migration_errors", "Quarantined records by kind of error.", found.errors, "tenant", "kind")
    gauge("migration_records_per_minute", "Records per minute of running jobs.", found.per_minute, "tenant")
    gauge("migration_job_seconds", "Duration of the latest finished job.", found.seconds, "tenant")
    gauge("system_calls_this_month", "Calls to a system in this month.", found.calls, "system")
    gauge("system_concurrency_limit", "Concurrent calls allowed for a system.", found.concurrency, "system")
    gauge("system_throttled", "1 while calls to a system are blocked.", found.throttled, "system")


async def _read_alert_inputs(outbound: OutboundService, metrics: Metrics) -> None:
    """Read the inputs of the built-in alerts, so that external monitoring can use the same."""
    measured = await outbound.alerts.figures.read()

    def total(name: str, about: str, figure: str) -> None:
        metrics.gauge(name, about, {(): sum(reading.value for reading in measured[figure])})

    def each(name: str, about: str, figure: str, label: str) -> None:
        metrics.gauge(name, about, {(it.subject,): it.value for it in measured[figure]}, label)

    total("scheduler_silent_seconds", "Time since a node last looked for due messages.", "silent_seconds")
    total("messages_overdue", "Messages overdue by more than a minute.", "overdue")
    total("missed_runs", "Schedules whose expected run did not happen.", "missed_runs")
    total("stalled_jobs", "Migration jobs without progress.", "stalled_jobs")
    each("worker_memory_ratio", "Used share of the memory limit of a process.", "memory_share", "node")
    each("channel_down", "1 while a channel sends nothing although nobody paused it.", "stopped_channels", "channel")
    free = outbound.alerts.figures.free()
    if free is not None:
        metrics.gauge("database_free_bytes", "Free disk space of the database file.", {(): free})
    opened = await outbound.alerts.open()
    severities: dict[tuple[str, ...], float] = {(str(one),): opened.get(one, 0) for one in AlertSeverity}
    metrics.gauge("alerts_open", "Open alerts.", severities, "severity")


def _drift(outbound: OutboundService) -> float:
    return outbound.clock.drift().total_seconds()
