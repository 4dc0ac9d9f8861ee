"""Canonical JSON and hashes of content. Pure.

The order of keys does not matter, 1 equals 1.0, and a null field equals a missing one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any

import orjson

MAX_DEPTH = 40

_AS_IT_IS = (str, bool)
_FAST = frozenset({str, bool, int})
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """Return the canonical JSON of a value; ValueError if it is not a JSON value."""
    return _quickly(value) or _ENCODER.encode(_plain(value, 0, nulls=False))


def plain_json(value: Any) -> Any:
    """Return the value with JSON types only, nulls included; ValueError if that is impossible."""
    return _plain(value, 0, nulls=True)


def content_digest(value: Any) -> str:
    return sha256(canonical_json(value).encode()).hexdigest()


def _quickly(value: Any) -> str | None:
    """Return the canonical JSON of flat texts and integers by the fast encoder; None if it might differ."""
    if type(value) is not dict or not all(type(one) in _FAST for one in value.values()):
        return None
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a key that is not a text, a lone surrogate, a number over 64 bits
        return None
    return written.decode() if written.isascii() and b"\x7f" not in written else None


def _plain(value: Any, depth: int, *, nulls: bool) -> Any:
    if value is None or isinstance(value, _AS_IT_IS):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if depth >= MAX_DEPTH:
        raise ValueError(f"is more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("has a field whose name is not a text")
        kept = value.items() if nulls else [(name, one) for name, one in value.items() if one is not None]
        return {name: _plain(one, depth + 1, nulls=nulls) for name, one in kept}
    if isinstance(value, list | tuple):
        return [_plain(entry, depth + 1, nulls=nulls) for entry in value]
    raise ValueError(f"is of a type ({type(value).__name__}) that cannot be written as JSON")


def _number(value: float | Decimal) -> int | float:
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise ValueError("has a number that is not finite or too large")
    return int(value) if value == int(value) else float(value)
