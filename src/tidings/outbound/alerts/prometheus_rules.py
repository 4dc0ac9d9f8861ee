"""The same rules in Prometheus' form, for a watcher that is outside. Pure.

deploy/prometheus/tidings.rules.yml is what this writes with the default thresholds; a test holds it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .rules import LATE_AFTER, MIN_ATTEMPTS, WINDOW, AlertRule, build_rules
from .thresholds import AlertThresholds

FILE_HEADER = (
    "# The rules that the engine has inside, for a Prometheus that watches from outside.",
    "# Written by: tidings alerts rules",
)
EVALUATION_INTERVAL = "15s"
_LAG = "schedule_execution_lag_seconds"
_DONE, _FAILED, _ALL = "messages_succeeded_total", "messages_failed_total", "messages_processed_total"


def prometheus_alerts(limits: AlertThresholds) -> list[dict[str, Any]]:
    """Every rule as Prometheus has it."""
    return [
        {
            "alert": f"Tidings{name.title().replace('_', '')}",
            "expr": _expression(rule, limits),
            "for": f"{rule.hold.total_seconds() / 60:g}m",
            "labels": {"severity": str(rule.severity), "rule": name},
            "annotations": {
                "summary": rule.title[:1].upper() + rule.title[1:],
                "runbook": f"docs/{rule.runbook}",
            },
        }
        for name, rule in build_rules(limits).items()
    ]


def rules_file(limits: AlertThresholds) -> str:
    """The file of rules."""
    group = ["groups:", "  - name: tidings", f"    interval: {EVALUATION_INTERVAL}", "    rules:"]
    return (
        "\n".join(
            [*FILE_HEADER, *group, *(line for one in prometheus_alerts(limits) for line in _lines(one))]
        )
        + "\n"
    )


def _lines(alert: dict[str, Any]) -> Iterator[str]:
    """One rule as YAML; expressions are blocks, so that nothing in them has to be quoted."""
    yield f"      - alert: {alert['alert']}"
    yield "        expr: |-"
    yield from (f"          {line}" for line in alert["expr"].splitlines())
    yield f"        for: {alert['for']}"
    for part in ("labels", "annotations"):
        yield f"        {part}:"
        yield from (f"          {name}: {value}" for name, value in alert[part].items())


def _expression(rule: AlertRule, limits: AlertThresholds) -> str:
    over = f"{rule.over:g}" if rule.over < 1 else f"{rule.over:.15g}"
    match rule.name:
        case "scheduler_silent":
            return f"max(scheduler_silent_seconds) > {over} or absent(scheduler_silent_seconds)"
        case "late":
            bucket = f'{_LAG}_bucket{{le="{LATE_AFTER.total_seconds()}"}}'
            first = f"{_rate(bucket)} / {_rate(f'{_LAG}_count')}"
            return f"1 - {first} > {over}\nand {_increase(f'{_LAG}_count')} >= {MIN_ATTEMPTS}"
        case "errors":
            return f"1 - {_rate(_DONE)} / {_rate(_ALL)} > {over}\nand {_increase(_ALL)} >= {MIN_ATTEMPTS}"
        case "failures":
            share = f"{_rate(_FAILED)} / ({_rate(_DONE)} + {_rate(_FAILED)})"
            return f"{share} > {over}\nand {_increase(_DONE)} + {_increase(_FAILED)} >= {MIN_ATTEMPTS}"
        case "errors_persist":
            return f"{_increase('persistent_errors_total')} > {over}"
        case "database_rewound":
            return f"sum(increase(database_rewinds_total[1d])) > {over}"
        case "database_full":
            return f"min(database_free_bytes) < {limits.database_full}"
        case name:
            return f"{_GAUGES[name]} > {over}"


_GAUGES = {
    "overdue": "max(messages_overdue)",
    "queue_deep": "max(scheduled_messages_due)",
    "memory": "max by (node) (worker_memory_ratio)",
    "run_missed": "max(missed_runs)",
    "job_stalled": "max(stalled_jobs)",
    "channel_stopped": "max by (channel) (channel_down)",
    "database_slow": "max(database_response_seconds)",
}


def _rate(metric: str) -> str:
    return f"sum(rate({metric}[{_window()}]))"


def _increase(metric: str) -> str:
    return f"sum(increase({metric}[{_window()}]))"


def _window() -> str:
    return f"{WINDOW.total_seconds() / 60:g}m"
