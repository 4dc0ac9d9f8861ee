"""The log sink: one line per event, as JSON or as text for a terminal.

Successes are logged per batch (a line per message would cost more than the message), failures per message,
with its ids. Events carry no secrets.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import structlog

from . import events

_ERRORS = (
    events.AlertRaised, events.BatchUnreadable, events.BrokerLost, events.ChannelLoggedOut,
    events.ChannelUnreachable, events.DatabaseRewound, events.ReportRefused, events.ReportUnreadable,
    events.StoreError,
)  # fmt: skip
_WARNINGS = (
    events.AttemptFailed, events.AuthenticationFailed, events.ClaimLost, events.ClockDrift,
    events.ClockSetBack, events.NoTransport, events.NodeFenced, events.NodeLost, events.SourceError,
    events.SourceTakenOver, events.StoreSlow, events.TasksExpired, events.TasksReaped,
    events.TasksRecovered, events.TransportLost,
)  # fmt: skip
_DEBUG = (
    events.AuthenticationLimited, events.BatchSettled, events.TransportAttempts,
)  # fmt: skip
_LEVELS: dict[type[events.Event], int] = {
    **dict.fromkeys(_ERRORS, logging.ERROR),
    **dict.fromkeys(_WARNINGS, logging.WARNING),
    **dict.fromkeys(_DEBUG, logging.DEBUG),
}  # others: info


def log_sink(*, form: str, level: str) -> events.Emit:
    """Return a sink that writes JSON or text ('auto': text on a terminal) to standard error."""
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
        values = {f.name: getattr(event, f.name) for f in fields(event) if f.repr}
        logger.log(level, _snake(type(event).__name__), **values)


def fan_out(*sinks: events.Emit) -> events.Emit:
    """Return a sink that passes events to all sinks; an exception of one does not affect the others."""

    def emit(event: events.Event) -> None:
        for sink in sinks:
            try:
                sink(event)
            except Exception:  # a failing sink must not affect the work
                logging.getLogger("tidings").exception("a sink failed")

    return emit


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _dumps(value: Any, **_: Any) -> str:
    import orjson

    return orjson.dumps(value, default=str).decode()


EventSink = Callable[[events.Event], None]
