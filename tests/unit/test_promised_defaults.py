"""Defaults that are promised as figures."""

from __future__ import annotations

from datetime import timedelta

from tidings.inbound.llm.settings import ModelSettings
from tidings.outbound.alerts.rules import RULES


def test_a_stalled_job_is_critical_and_the_other_alerts_of_migrations_are_warnings() -> None:
    """C11: a job without progress is critical; failures, queue depth and memory are warnings."""
    severities = {name: str(RULES[name].severity) for name in ("job_stalled", "failures", "queue_deep", "memory")}

    assert severities.pop("job_stalled") == "critical"
    assert set(severities.values()) == {"warning"}


def test_a_language_model_has_thirty_seconds_to_answer() -> None:
    """D13: for each of its two attempts, unless it is set otherwise."""
    assert ModelSettings.__dataclass_fields__["timeout"].default == timedelta(seconds=30)
