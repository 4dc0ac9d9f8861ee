"""The measurements behind each bar, one function per word of `--only`; each gives back its rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .calls import call
from .contest import Series
from .rows import Row
from .setting import Setting

OURS, LIMITS, WEBHOOKS, RABBIT = "bench.ours", "bench.limits", "bench.webhooks", "bench.rabbit"
PAIR = "bench.pair"
SEEN = "bench.observability"
DRAMATIQ, TASKIQ = "bench.peers.dramatiq", "bench.peers.taskiq"
PGQUEUER, PROCRASTINATE = "bench.peers.pgqueuer", "bench.peers.procrastinate"
SLOTS = 256
FLAT_MB = 20  # growth from a tenth of the way to the end that still counts as flat


def drain(setting: Setting) -> list[Row]:
    """Messages/s through claim, send and settle, against the peers and the raw limits."""
    return [*_drain_postgres(setting), *_drain_sqlite(setting)]


def _drain_postgres(setting: Setting) -> list[Row]:
    ours: dict[str, Any] = {"n": setting.sizes.drain, "slots": SLOTS}
    peer: dict[str, Any] = {"n": setting.sizes.drain, "python": setting.peer_python}
    done = setting.contest(
        "drain, PostgreSQL",
        {
            "ours": setting.on_postgres(OURS, "drain_postgres", **ours),
            "PgQueuer": setting.on_postgres(PGQUEUER, "drain", **peer),
            "ours, started marks": setting.on_postgres(OURS, "drain_postgres", started_marks=True, **ours),
            "PgQueuer, pool": setting.on_postgres(PGQUEUER, "drain", pool=4, **peer),
            "ours, old snapshot": setting.on_postgres(OURS, "drain_postgres", snapshot=True, **ours),
            "raw SQL": setting.on_postgres(LIMITS, "postgres", n=setting.sizes.drain),
        },
    )
    second = setting.on_postgres(PROCRASTINATE, "drain", python=setting.peer_python, n=setting.sizes.procrastinate)
    done |= setting.contest("drain, PostgreSQL", {"Procrastinate": second}, once=True)
    # The peer's better configuration is the one to beat.
    best = max(("PgQueuer", "PgQueuer, pool"), key=lambda name: done[name].median() or 0)
    compare = [
        ("drain_postgres", "ours", best, 1.5),
        ("drain_postgres_started_marks", "ours, started marks", best, None),
        ("drain_postgres_old_snapshot", "ours, old snapshot", "ours", None),
        ("drain_postgres_to_raw", "ours", "raw SQL", None),
        ("drain_postgres_to_second_peer", "ours", "Procrastinate", None),
    ]
    return [
        _ratio(key, f"drain, PostgreSQL: {who}", ours=done[who], other=done[to], to=to, at_least=at_least)
        for key, who, to, at_least in compare
    ]


def _drain_sqlite(setting: Setting) -> list[Row]:
    n = setting.sizes.drain
    done = setting.contest(
        "drain, SQLite",
        {
            "ours": setting.on_sqlite(OURS, "drain_sqlite", n=n, slots=SLOTS),
            "raw SQL": setting.on_sqlite(LIMITS, "sqlite", n=n, library="sqlite3"),
            "raw SQL through apsw": setting.on_sqlite(LIMITS, "sqlite", n=n),
        },
    )
    # The bar was set with a script on the standard library's module; our own, newer driver is beside it.
    return [
        _ratio(key, "drain, SQLite: ours", ours=done["ours"], other=done[to], to=to, at_least=at_least)
        for key, to, at_least in [
            ("drain_sqlite", "raw SQL", 0.35),
            ("drain_sqlite_to_apsw", "raw SQL through apsw", None),
        ]
    ]


def bulk(setting: Setting) -> list[Row]:
    """Messages/s accepted in one call, against COPY of the same rows into the same tables."""
    n = setting.sizes.drain
    done = setting.contest(
        "bulk accept, PostgreSQL",
        {
            "ours": setting.on_postgres(OURS, "bulk_accept_postgres", n=n),
            "raw COPY": setting.on_postgres(OURS, "raw_copy_postgres", n=n),
        },
    )
    what, ours, raw = "bulk accept, PostgreSQL: ours", done["ours"], done["raw COPY"]
    return [
        _ratio("bulk_postgres", what, ours=ours, other=raw, to="raw COPY", at_least=0.5),
        _ratio("bulk_postgres_to_bytes", what, ours=ours, other=raw, to="COPY of ready bytes", by="bytes_per_s"),
    ]


def lag(setting: Setting) -> list[Row]:
    """How late messages start: spread over time, and all at once."""
    sizes = setting.sizes
    spread = setting.contest("lag", setting.on_both("lag", n=sizes.lag, over=sizes.lag_over), once=True)
    burst = setting.contest("burst", setting.on_both("burst", n=sizes.burst), once=True)
    return [
        *_absolute(
            "lag", f"lag of {sizes.lag:,} over {sizes.lag_over:g} s, p99", spread, by="p99", unit="ms", at_most=20
        ),
        *_absolute("burst", f"{sizes.burst:,} at one instant, last started", burst, by="last_s", unit="s", at_most=0.5),
    ]


def claim(setting: Setting) -> list[Row]:
    """How long a poll takes among rows that cannot be claimed."""
    sizes = setting.sizes
    work = {"future": sizes.future, "keyed": sizes.parked, "paused": sizes.parked}
    done = setting.contest("claim", setting.on_both("claim_latency", timeout=1800, **work), once=True)
    return [
        # An idle node asks when to look again and claims nothing; that question is its poll.
        *_absolute("poll_empty", "empty poll, p99", done, by="next_p99_ms", unit="ms", at_most=2),
        *_absolute("claim_empty", "claim that finds nothing, p99", done, by="empty_p99_ms", unit="ms"),
        *_absolute("claim_hundred", "claim of 100, p99", done, by="claim_p99_ms", unit="ms", at_most=10),
    ]


def memory(setting: Setting) -> list[Row]:
    """What a long drain holds in memory."""
    n = setting.sizes.memory
    done = setting.contest("memory", setting.on_both("memory", timeout=1800, n=n), once=True)
    for series in done.values():
        for answer in series.answers:
            answer["growth_mb"] = answer["late_mb"] - answer["early_mb"]
            answer["peak_mb"] = answer["process"]["peak_mb"]  # as the kernel counted it
    return [
        *_absolute("memory_peak", f"memory draining {n:,}, most", done, by="peak_mb", unit="MB", at_most=200),
        *_absolute("memory_growth", f"memory draining {n:,}, growth", done, by="growth_mb", unit="MB", at_most=FLAT_MB),
    ]


def webhook(setting: Setting) -> list[Row]:
    """Signed webhooks/s to a loopback receiver, against the bare HTTP client."""
    n = setting.sizes.webhook
    done = setting.contest(
        "webhook",
        {
            "ours, SQLite": setting.on_sqlite(OURS, "webhook_rate", n=n, in_flight=100),
            "bare client": lambda: call(WEBHOOKS, "bare_client", n=n, in_flight=100),
            "channel alone": lambda: call(WEBHOOKS, "channel_alone", n=n, in_flight=100),
        },
    )
    ours, bare = done["ours, SQLite"], done["bare client"]
    what = "webhook: ours, SQLite"
    return [_ratio("webhook_sqlite", what, ours=ours, other=bare, to="bare client", at_least=0.25)]


def pair(setting: Setting) -> list[Row]:
    """Messages/s of two worker processes on one PostgreSQL, against the best that PgQueuer does."""
    n = setting.sizes.drain
    peer: dict[str, Any] = {"n": n, "python": setting.peer_python}
    done = setting.contest(
        "drain by two, PostgreSQL",
        {
            "ours": setting.on_postgres(PAIR, "drain", n=n, slots=SLOTS),
            "PgQueuer, two": setting.on_postgres(PGQUEUER, "drain_pair", **peer),
            "PgQueuer, two, pool": setting.on_postgres(PGQUEUER, "drain_pair", pool=4, **peer),
            "PgQueuer, one": setting.on_postgres(PGQUEUER, "drain", **peer),
        },
    )
    best = max((name for name in done if name != "ours"), key=lambda name: done[name].median() or 0)
    what = "drain by two processes, PostgreSQL"
    return [_ratio("drain_pair", what, ours=done["ours"], other=done[best], to=best, at_least=1.5)]


def observability(setting: Setting) -> list[Row]:
    """What log, metrics and events cost the drain, and what the audit trail costs a call."""
    n = setting.sizes.drain
    rows = []
    for store, url in setting.urls().items():
        work: dict[str, Any] = {"n": n, "slots": SLOTS}
        done = setting.contest(
            f"drain, seen or not, {store}",
            {"seen": url(SEEN, "drain", watched=True, **work), "not seen": url(SEEN, "drain", **work)},
        )
        what = f"drain with log, metrics and events, {store}"
        seen, unseen = done["seen"], done["not seen"]
        key = f"observability_{store.lower()}"
        rows.append(_ratio(key, what, ours=seen, other=unseen, to="without", at_least=0.9))
        calls = setting.contest(
            f"calls with audit, {store}",
            {"audited": url(SEEN, "calls", n=n // 20, audited=True), "not audited": url(SEEN, "calls", n=n // 20)},
        )
        audited, quiet = calls["audited"], calls["not audited"]
        key, what = f"audit_{store.lower()}", f"messages accepted one by one with audit, {store}"
        rows.append(_ratio(key, what, ours=audited, other=quiet, to="without"))
    return rows


def rabbit(setting: Setting) -> list[Row]:
    """Messages/s through RabbitMQ with two sending processes, ours with every outcome recorded."""
    from tidings.testing.rabbitmq import RabbitBroker

    n, python = setting.sizes.rabbit, setting.peer_python
    with tempfile.TemporaryDirectory(dir=setting.scratch) as folder, RabbitBroker(Path(folder) / "mq") as broker:
        ours: dict[str, Any] = {"broker": broker.url, "n": n}
        done = setting.contest(
            "drain, RabbitMQ",
            {
                "ours": setting.on_postgres(RABBIT, "drain", **ours),
                "Dramatiq": lambda: call(DRAMATIQ, "drain", python=python, **ours),
                "Taskiq": lambda: call(TASKIQ, "drain", python=python, **ours),
                "ours, started marks": setting.on_postgres(RABBIT, "drain", started_marks=True, **ours),
            },
        )
    compare = [
        ("drain_rabbit_to_dramatiq", "ours", "Dramatiq", 1.5),
        ("drain_rabbit_to_taskiq", "ours", "Taskiq", 1.5),
        ("drain_rabbit_started_marks", "ours, started marks", "ours", None),
    ]
    return [
        _ratio(key, f"drain, RabbitMQ: {who}", ours=done[who], other=done[to], to=to, at_least=at_least)
        for key, who, to, at_least in compare
    ]


MEASURES: Mapping[str, Callable[[Setting], list[Row]]] = {
    "drain": drain,
    "pair": pair,
    "bulk": bulk,
    "lag": lag,
    "claim": claim,
    "memory": memory,
    "webhook": webhook,
    "rabbit": rabbit,
    "observability": observability,
}


def _ratio(
    key: str, what: str, *, ours: Series, other: Series, to: str, at_least: float | None = None, by: str = "per_s"
) -> Row:
    return Row(
        key=key,
        what=what,
        measured=ours.median(),
        reference=other.median(by),
        reference_is=to,
        at_least=at_least,
        # The worse of both: a disturbed peer would flatter us.
        foreign_cpu=max((one.foreign_cpu for one in (ours, other) if one.foreign_cpu is not None), default=None),
        samples=ours.values(),
        problem=ours.problem or other.problem,
    )


def _absolute(
    key: str, what: str, done: Mapping[str, Series], *, by: str, unit: str, at_most: float | None = None
) -> list[Row]:
    return [
        Row(
            key=f"{key}_{store.lower()}",
            what=f"{what}, {store}",
            unit=unit,
            measured=series.median(by),
            at_most=at_most,
            foreign_cpu=series.foreign_cpu,
            samples=series.values(by),
            problem=series.problem,
        )
        for store, series in done.items()
    ]
