"""The log sink: one line per fact, JSON for machines or text for a terminal.

Successes are told per batch (a line per message would cost more than the message); what went wrong is told
per message, with its ids. Secrets never come this far: events carry none.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import structlog

from . import events

_LEVELS: dict[type[events.Event], int] = {
    events.BatchSettled: logging.DEBUG,
    events.AlertRaised: logging.ERROR,
    events.AttemptFailed: logging.WARNING,
    events.AuthenticationFailed: logging.WARNING,
    events.AuthenticationLimited: logging.DEBUG,
    events.ClaimLost: logging.WARNING,
    events.TasksExpired: logging.WARNING,
    events.NodeLost: logging.WARNING,
    events.NodeFenced: logging.WARNING,
    events.TasksReaped: logging.WARNING,
    events.DatabaseRewound: logging.ERROR,
    events.StoreTrouble: logging.ERROR,
    events.StoreSlow: logging.WARNING,
    events.BrokerLost: logging.ERROR,
    events.ParcelUnreadable: logging.ERROR,
    events.ReportRefused: logging.ERROR,
    events.ReportUnreadable: logging.ERROR,
    events.ParcelsSent: logging.DEBUG,
    events.TasksInherited: logging.WARNING,
    events.TransportLost: logging.WARNING,
    events.NoTransport: logging.WARNING,
    events.SourceTrouble: logging.WARNING,
    events.SourceTakenOver: logging.WARNING,
    events.ClockDrift: logging.WARNING,
    events.ClockSetBack: logging.WARNING,
    events.ChannelResumed: logging.INFO,
    events.ChannelLoggedOut: logging.ERROR,
    events.ChannelUnreachable: logging.ERROR,
}


def log_sink(*, form: str, level: str) -> events.Emit:
    """A sink that writes to standard error, in JSON or in text ('auto': text on a terminal)."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    pretty = structlog.dev.ConsoleRenderer(timestamp_key="time")
    renderer: Any = pretty if text else structlog.processors.JSONRenderer(serializer=_dumps)
    logger = structlog.wrap_logger(
        structlog.PrintLogger(file=sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
    )
    logger = logger.bind(logger="tidings")
    least = logging.getLevelName(level.upper())
    return lambda event: _write(logger, least, event)


def _write(logger: Any, least: int, event: events.Event) -> None:
    level = _LEVELS.get(type(event), logging.INFO)
    if level >= least:
        told = {f.name: getattr(event, f.name) for f in fields(event) if f.repr}
        logger.log(level, _snake(type(event).__name__), **told)


def fan_out(*sinks: events.Emit) -> events.Emit:
    """Tell every sink; a failing one is dropped from this fact and changes nothing."""

    def emit(event: events.Event) -> None:
        for sink in sinks:
            try:
                sink(event)
            except Exception:  # a sink only listens: its failure must not touch the work
                logging.getLogger("tidings").exception("a sink failed")

    return emit


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _dumps(value: Any, **_: Any) -> str:
    import orjson

    return orjson.dumps(value, default=str).decode()


EventSink = Callable[[events.Event], None]
