"""StatsD on a real socket and OpenTelemetry with its in-memory reader count the same as Prometheus (B9, C9)."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from tidings.model.errors import Misconfigured
from tidings.observability import counters
from tidings.observability.events import (
    AttemptFailed,
    AuthenticationFailed,
    AuthenticationLimited,
    BatchSettled,
    ClaimLost,
    DatabaseRewound,
    Event,
    NodeLost,
    StoreError,
    TasksExpired,
    TasksReaped,
    TransportAttempts,
)
from tidings.observability.metrics import Metrics
from tidings.observability.statsd import MAX_PACKET, StatsdSink, statsd_lines

EVENTS: list[Event] = [
    BatchSettled(
        1,
        4,
        {"done": 2, "failed:permanent": 1, "deferred": 1},
        60.0,
        [0.5, 2.0],
        [0.01, 0.02, 0.03],
        {("acme", "done"): 2, ("acme", "failed:permanent"): 1},
    ),
    BatchSettled(
        1, 2, {"retry:temporary": 1, "unknown": 1}, 5.0, [], [0.005], {("b", "retry:temporary"): 1, ("b", "unknown"): 1}
    ),
    AttemptFailed(1, 7, "default", "q", 3, "retry:temporary", "temporary", "503", 5.0),
    AttemptFailed(1, 7, "default", "q", 2, "retry:temporary", "temporary", "503", 5.0),
    ClaimLost(1, 7, "q", "done", "default"),
    StoreError("claim: now", "no answer"),
    TasksExpired(3),
    TasksReaped(1, 2, 4, 0),
    NodeLost(1, "n"),
    TransportAttempts("t", 4),
    DatabaseRewound(1, 5, 9, 6),
    AuthenticationFailed("203.0.113.9", "tdk_00000000", "api"),
    AuthenticationLimited("203.0.113.9", None),
]


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    """A StatsD server's socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(5)
        yield made


def received(receiver: socket.socket, packets: int) -> list[str]:
    """The lines of so many packets."""
    return [line for _ in range(packets) for line in receiver.recv(65_536).decode().split("\n")]


def totals(found: list[str]) -> Counter[str]:
    """Counters by name, as a server would add them up."""
    sums: Counter[str] = Counter()
    for line in found:
        name, _, rest = line.partition(":")
        value, kind, *_ = rest.split("|")
        if kind == "c":
            sums[name.removeprefix("tidings.")] += int(value)
    return sums


def scraped(events_: list[Event]) -> Counter[str]:
    """The same counters from Prometheus, with label values as parts of the name."""
    metrics, sums = Metrics(), Counter[str]()
    for event in events_:
        metrics.take(event)
    for line in metrics.text().decode().splitlines():
        name, _, value = line.rpartition(" ")
        bare, _, labels = name.removeprefix("tidings_").partition("{")
        if bare in counters.COUNTERS and float(value):
            given = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            values = [re.sub("[: ]", "_", given[label]) for label in counters.COUNTERS[bare][1:]]
            sums[".".join([bare, *values])] += int(float(value))
    return sums


def test_statsd_gets_what_prometheus_counts(receiver: socket.socket) -> None:
    """Over a real socket, a packet for each fact; nothing of it is missing or counted twice."""
    sink = StatsdSink("127.0.0.1", receiver.getsockname()[1])
    for event in EVENTS:
        sink.take(event)
    found = received(receiver, len(EVENTS) - 1)  # a second try adds to no counter
    sink.close()

    assert totals(found) == scraped(EVENTS)
    assert set(counters.COUNTERS) == {name.partition(".")[0] for name in totals(found)}
    assert "tidings.schedule_execution_lag:2000|ms" in found
    assert "tidings.processing_time:30|ms" in found


def test_a_large_batch_is_sampled_and_fits_its_packets(receiver: socket.socket) -> None:
    """At most twenty times of a name, each with the share that it stands for."""
    batch = BatchSettled(1, 1000, {"done": 1000}, 1.0, [0.001] * 1000, [n / 1000 for n in range(1000)])
    found = list(statsd_lines(batch, counters.EventCounter()))
    timed = [line for line in found if "|ms|@" in line]
    assert len(timed) == 40 and all(line.endswith("|@0.020000") for line in timed)

    sink = StatsdSink("127.0.0.1", receiver.getsockname()[1])
    sink.take(batch)
    packets: list[str] = []
    while sum(packet.count("\n") + 1 for packet in packets) < len(found):
        packets.append(receiver.recv(65_536).decode())
    sink.close()
    assert max(map(len, packets)) <= MAX_PACKET


def test_statsd_without_a_listener_disturbs_nothing() -> None:
    """UDP says no at the second packet at the latest; the work does not hear of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]
    sink = StatsdSink("127.0.0.1", port)
    for event in EVENTS:
        sink.take(event)
    sink.close()


def test_opentelemetry_gets_what_prometheus_counts() -> None:
    """Counters with their label, histograms with every value, read back from its own memory."""
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    from tidings.observability.otel import OtelSink

    reader = export.InMemoryMetricReader()
    sink = OtelSink(reader)
    for event in EVENTS:
        sink.take(event)
    (resource,) = reader.get_metrics_data().resource_metrics
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    sink.close()

    sums: Counter[str] = Counter()
    for name in counters.COUNTERS:
        for point in metrics[f"tidings.{name.removesuffix('_total')}"].data.data_points:
            labels = [re.sub("[: ]", "_", str(point.attributes[one])) for one in counters.COUNTERS[name][1:]]
            sums[".".join([name, *labels])] += point.value
    assert sums == scraped(EVENTS)
    (times,) = metrics["tidings.processing_time"].data.data_points
    assert (times.count, times.sum, metrics["tidings.processing_time"].unit) == (4, pytest.approx(0.065), "s")
    assert resource.resource.attributes["service.name"] == "tidings"


def test_an_unknown_statsd_host_prevents_the_start() -> None:
    """With a remedy."""
    with pytest.raises(Misconfigured, match="cannot be resolved"):
        StatsdSink("no-such-host.invalid", 8125)


def test_tenants_beyond_the_limit_share_one_label() -> None:
    """A label per tenant must not grow without bound: the first fifty are named, the others are `other`."""
    many = [BatchSettled(1, 1, {"done": 1}, 1.0, tenants={(f"t{n}", "done"): 1}) for n in range(80)]
    found = scraped([*many, *many])
    assert found["tenant_attempts_total.t0.succeeded"] == 2
    assert found["tenant_attempts_total.other.succeeded"] == 2 * (80 - counters.MAX_TENANTS)
    assert sum(name.startswith("tenant_attempts_total") for name in found) == counters.MAX_TENANTS + 1
