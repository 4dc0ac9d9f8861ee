"""Logs of libraries, in the format of our own log."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure_library_logs(*, form: str, level: str) -> None:
    """Write warnings and errors of `logging` to stderr, as JSON or text like our own log."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    pretty = structlog.dev.ConsoleRenderer(timestamp_key="time")
    renderer: Any = pretty if text else structlog.processors.JSONRenderer()
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([] if text else [structlog.processors.format_exc_info]),
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
