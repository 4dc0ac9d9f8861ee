"""Finds a value in a record by its path. `a.b.0` descends; a field with that whole name comes first."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from ..connectors.port import Record
from .rules import OWN_ID


def value_at(record: Record, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    if path == OWN_ID:
        return record.id
    if path in record.fields:
        return record.fields[path]
    value: Any = record.fields
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and len(step) < 10:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def has_path_root(path: str, fields: Container[str]) -> bool:
    """Return whether the source has the first field of a path."""
    return path == OWN_ID or path in fields or path.partition(".")[0] in fields
