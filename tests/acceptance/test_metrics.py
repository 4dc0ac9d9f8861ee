"""Metrics and the scheduler's health, as a monitor reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tidings.api import create_api
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category
from tidings.observability.metrics import Metrics

from .harness import AppHarness, house


@pytest.fixture
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on either database."""
    async with house(request.getfixturevalue("postgres_url") if request.param else sqlite_url) as built:
        yield built


async def scraped(home: AppHarness, metrics: Metrics) -> dict[str, float]:
    """What a scrape says, by name and labels."""
    api = create_api(home.app, metrics)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as caller:
        answer = await caller.get("/metrics")
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.parametrize("home", [False, True], ids=["sqlite", "postgres"], indirect=True)
async def test_metrics_have_the_promised_names_and_count_what_happened(home: AppHarness) -> None:
    """A9, B9: processed, succeeded, failed, times, errors by category; due, lag, errors, duplicates."""
    metrics = Metrics()
    runner = home.app.worker.runner
    runner._settler._emit = metrics.take
    answers: list[Outcome] = [Done("r"), Reject(Category.PERMANENT, "no"), Retry(Category.TEMPORARY, "later")]
    home.script("out", lambda _message: answers.pop(0))
    for to in ("ada", "bob", "cyd"):
        await home.http.post("/v1/messages", json={"channel": "out", "to": to, "text": "hello"})
    before = await scraped(home, metrics)
    assert (before["tidings_scheduled_messages_due"], before['tidings_queue_depth{channel="out"}']) == (3, 3)
    home.clock.advance(2)
    await home.work()
    after = await scraped(home, metrics)
    assert after["tidings_messages_processed_total"] == 3
    assert after["tidings_messages_succeeded_total"] == 1
    assert after["tidings_messages_failed_total"] == 1
    assert after['tidings_errors_by_category_total{category="permanent"}'] == 1
    assert after['tidings_errors_by_category_total{category="temporary"}'] == 1
    assert after["tidings_processing_time_seconds_count"] == 3
    assert (
        after["tidings_schedule_execution_lag_seconds_count"]
        == after["tidings_scheduled_messages_processed_total"]
        == 3
    )
    assert after['tidings_schedule_execution_lag_seconds_bucket{le="1.0"}'] == 0
    assert after['tidings_schedule_execution_lag_seconds_bucket{le="5.0"}'] == 3
    assert after["tidings_duplicate_detections_total"] == 0
    assert after["tidings_scheduled_messages_due"] == 0
    assert {"tidings_nodes_live", "tidings_oldest_due_seconds", "tidings_clock_drift_seconds"} <= after.keys()


@pytest.mark.parametrize("home", [False, True], ids=["sqlite", "postgres"], indirect=True)
async def test_scheduler_health_checks_polling_queue_depth_and_clocks(home: AppHarness) -> None:
    """B10: a poll within two minutes, a bounded queue, clocks that agree; 503 with the reason otherwise."""
    good = await home.http.get("/health/scheduler")
    assert (good.status_code, good.json()["healthy"]) == (200, True)
    home.clock.advance(121)
    silent = await home.http.get("/health/scheduler")
    assert silent.status_code == 503
    assert silent.json()["reasons"] == ["no process has polled for due messages in the last 2 min"]
    assert silent.json()["last_poll_seconds"] > 120
