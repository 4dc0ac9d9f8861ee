"""The log sink: one line per event, as JSON or as text for a terminal.

Each attempt has a line with the public ids of its message: successes are written together, with one call per
batch, and can be turned off. Events carry no secrets.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple, TextIO

import orjson
import structlog

from . import events

_ERRORS = (
    events.AlertRaised, events.BatchUnreadable, events.BrokerLost, events.ChannelLoggedOut,
    events.ChannelUnreachable, events.DatabaseRewound, events.ReportRefused, events.ReportUnreadable,
    events.AttemptError, events.StoreError, events.UnexpectedError,
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
_stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")


class LogOptions(NamedTuple):
    """How the log is written."""

    form: str = "auto"  # json or text; auto: text on a terminal, otherwise json
    level: str = "info"
    output: str = "stderr"  # or stdout
    successes: bool | None = None  # a line for each successful attempt; None: only as JSON

    @property
    def stream(self) -> TextIO:
        """The stream to write to."""
        return sys.stdout if self.output == "stdout" else sys.stderr

    @property
    def is_json(self) -> bool:
        """Whether lines are JSON objects."""
        return self.form == "json" or (self.form == "auto" and not self.stream.isatty())

    @property
    def renderer(self) -> Any:
        """The last processor of structlog: it turns a line's fields into text."""
        if self.is_json:
            return structlog.processors.JSONRenderer(serializer=_dumps)
        return structlog.dev.ConsoleRenderer(timestamp_key="time")


class LogSink:
    """Writes events to a stream."""

    def __init__(self, options: LogOptions) -> None:
        self._successes = options.is_json if options.successes is None else options.successes
        self._stream = options.stream
        self._render: Callable[[Any], Any] = _dumps if options.is_json else partial(options.renderer, None, "")
        self._least = logging.getLevelNamesMapping()[options.level.upper()]

    def __call__(self, event: events.Event) -> None:
        """Write one event, and a line for each success of a batch."""
        level = _LEVELS.get(type(event), logging.INFO)
        lines: list[dict[str, Any]] = []
        if self._successes and self._least <= logging.INFO and isinstance(event, events.BatchSettled):
            own = {"event": "attempt_succeeded", "level": "info", "node": event.node}
            lines = [{**fields, **own} for fields in event.successes()]
        if level >= self._least:
            own = {"event": _snake(type(event).__name__), "level": logging.getLevelName(level).lower()}
            lines.append({**_fields(event), **own})
        if lines:
            tail = {"logger": "tidings", **_stamp(None, "", {})}
            for line in lines:
                line.update(tail)
            self._stream.write("".join([f"{self._render(line)}\n" for line in lines]))
            self._stream.flush()


def log_sink(options: LogOptions = LogOptions()) -> events.Emit:
    """Return a sink that writes each event as a line of JSON or text."""
    return LogSink(options)


def configure_library_logs(options: LogOptions) -> None:
    """Write warnings and errors of `logging` to the log, as JSON or text like our own lines."""
    handler = logging.StreamHandler(options.stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, _stamp],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([structlog.processors.format_exc_info] if options.is_json else []),
                options.renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[options.level.upper()]))


def _fields(event: events.Event) -> dict[str, Any]:
    """Return the fields of a line; public ids are fields of their own, optional fields may be missing."""
    values = {f.name: getattr(event, f.name) for f in fields(event) if f.repr}
    optional = {f.name for f in fields(event) if f.default is None}
    ids = values.pop("ids", {})
    return {**{name: it for name, it in values.items() if it is not None or name not in optional}, **ids}


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
    return orjson.dumps(value, default=str).decode()
