"""What the health routes answer with: the figures of the last 15 minutes, and a reason for each failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tidings.model.outcome import Done, Reject
from tidings.model.task import Category, NewTask

from .harness import AppHarness, house


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on either database."""
    postgres = request.param == "postgres"
    async with house(request.getfixturevalue("postgres_url") if postgres else sqlite_url) as built:
        yield built


async def test_health_has_its_figures_over_the_last_fifteen_minutes(home: AppHarness) -> None:
    """A10: the whole body; attempts of more than 15 minutes ago no longer count."""
    home.script("out", lambda message: Reject(Category.PERMANENT, "no") if message.recipient == "b" else Done())
    for to in "aaab":
        await home.accept(to=to)
    await home.work()

    now = (await home.http.get("/health")).json()
    home.clock.advance(minutes=17)
    await home.app.worker.node.beat()
    later = (await home.http.get("/health")).json()

    assert now.keys() == {
        "status", "reasons", "total_processed", "success_rate", "avg_processing_time_ms",
        "error_rate_by_category",
    }  # fmt: skip
    assert (now["total_processed"], now["success_rate"]) == (4, 0.75)
    assert now["error_rate_by_category"] == {
        "temporary": 0, "permanent": 0.25, "throttling": 0, "validation": 0, "system": 0,
    }  # fmt: skip
    assert now["avg_processing_time_ms"] >= 0
    assert (later["total_processed"], later["success_rate"], later["status"]) == (0, None, "up")


async def test_the_schedulers_health_fails_for_a_deep_queue_and_for_a_wrong_clock(home: AppHarness) -> None:
    """B10: over 10,000 due messages, or a clock that is off by more than 10 s: 503 with the reason."""
    now = home.clock.now()
    await home.app.store.enqueue([NewTask("out", "message", now) for _ in range(10_001)])
    home.clock.set_drift(timedelta(seconds=11))

    answer = await home.http.get("/health/scheduler")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["over 10,000 messages are due", "this machine's clock is off by 11 s"]
    assert (answer.json()["queue_depth"], answer.json()["clock_drift_seconds"]) == (10_001, 11.0)
