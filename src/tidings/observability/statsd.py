"""The StatsD sink: counters, timings and gauges over UDP, without retransmission.

Of a large batch's timings only a sample is sent, with its sample rate.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterable, Iterator, Sequence

from ..model.errors import Misconfigured
from . import counters
from .events import Event

PREFIX = "tidings"
MAX_PACKET = 1400  # bytes, to avoid fragmentation
MOST_TIMES = 20  # per batch and name
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")


class StatsdSink:
    """Sends counters to one address, without waiting. Raises Misconfigured if its host is unknown."""

    def __init__(self, host: str, port: int) -> None:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            problem = f"the statsd host {host!r} cannot be resolved ({error.strerror or error})"
            remedy = "use a host that resolves on this machine, or its address"
            raise Misconfigured(problem, remedy=remedy, field="statsd") from None
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        self._socket.connect(address)
        self._counting = counters.EventCounter()

    def take(self, event: Event) -> None:
        """Send one event; errors are ignored."""
        self._send(statsd_lines(event, self._counting))

    def push_gauges(self, gauges: Iterable[tuple[str, tuple[str, ...], float]]) -> None:
        """Send the current values of gauges; errors are ignored."""
        self._send(f"{_name(name, labels)}:{value:g}|g" for name, labels, value in gauges if value >= 0)

    def _send(self, lines: Iterable[str]) -> None:
        for packet in pack_lines(lines):
            with contextlib.suppress(OSError):
                self._socket.send(packet)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def statsd_lines(event: Event, counting: counters.EventCounter) -> Iterator[str]:
    """Return one line per counter and timing."""
    for name, n, labels in counting.increments(event):
        yield f"{_name(name, labels)}:{n}|c"
    for name, values in counters.timings(event):
        chosen = _spread(values)
        share = "" if len(chosen) == len(values) else f"|@{len(chosen) / len(values):.6f}"
        for value in chosen:
            yield f"{PREFIX}.{name.removesuffix('_seconds')}:{value * 1000:g}|ms{share}"


def _name(name: str, labels: Iterable[str]) -> str:
    return ".".join([PREFIX, name, *(_STRANGE.sub("_", label) for label in labels)])


def pack_lines(found: Iterable[str]) -> Iterator[bytes]:
    """Pack lines into as few packets as possible. Pure."""
    packet = b""
    for line in found:
        raw = line.encode()
        if packet and len(packet) + 1 + len(raw) > MAX_PACKET:
            yield packet
            packet = b""
        packet = packet + b"\n" + raw if packet else raw
    if packet:
        yield packet


def _spread(values: Sequence[float]) -> Sequence[float]:
    """Return an evenly spaced sample."""
    step = -(-len(values) // MOST_TIMES)
    return values[::step] if step > 1 else values
