"""Conversion of SQL values to JSON and back."""

from __future__ import annotations

import datetime
import decimal
import uuid
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from .port import invalid

if TYPE_CHECKING:
    import sqlalchemy as sa

_LARGEST = 1 << 63


def plain(value: Any) -> Any:
    """Convert a value to JSON: times to ISO 8601, exact numbers to texts, bytes to base64."""
    match value:
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal() | uuid.UUID():
            return str(value)
        case datetime.timedelta():
            return value.total_seconds()
        case bytes() | bytearray() | memoryview():
            return b64encode(bytes(value)).decode()
        case int() if not -_LARGEST <= value < _LARGEST:
            return str(value)
    return value


def typed(column: sa.Column[Any], value: str) -> Any:
    """Convert a key stored as text to the type of its column."""
    try:
        kind = column.type.python_type
    except NotImplementedError:
        return value
    try:
        if issubclass(kind, datetime.datetime | datetime.date | datetime.time):
            return kind.fromisoformat(value)
        return kind(value) if kind in (int, float, decimal.Decimal, uuid.UUID) else value
    except (ValueError, ArithmeticError):
        raise invalid(f"{value[:40]!r} is not a valid {column.name}", column.name) from None
