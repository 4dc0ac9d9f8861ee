"""Logs of libraries, in the format of our own log."""

from __future__ import annotations

import logging

import structlog

from ..observability.log import LogOptions


def configure_library_logs(options: LogOptions) -> None:
    """Write warnings and errors of `logging` to the log, as JSON or text like our own lines."""
    handler = logging.StreamHandler(options.stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            ],
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
