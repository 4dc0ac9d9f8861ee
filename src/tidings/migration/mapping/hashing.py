"""Hashes of content: the same for the same content, however it is written down. Pure.

The order of keys does not matter, 1 is 1.0, and a field that is null is a field that is not there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any

DEEPEST = 40


def canonical(value: Any) -> str:
    """The one way to write a value down; ValueError for what is no plain value."""
    return json.dumps(_plain(value, 0), sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """A hash of the content."""
    return sha256(canonical(value).encode()).hexdigest()


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if depth >= DEEPEST:
        raise ValueError(f"is more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("has a field whose name is not a text")
        return {name: _plain(entry, depth + 1) for name, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_plain(entry, depth + 1) for entry in value]
    raise ValueError(f"is of a type ({type(value).__name__}) that cannot be written as JSON")


def _number(value: float | Decimal) -> int | float:
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise ValueError("is not a finite number")
    return int(value) if value == int(value) else float(value)
