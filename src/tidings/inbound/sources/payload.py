"""Tolerant access to the fields of a payload: any field may be missing or have another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from ...model.errors import Invalid
from ...model.time import SECOND

LONGEST_ID = 256


def json_object(body: bytes, platform: str) -> Mapping[str, Any]:
    """Parse a body as a JSON object; raises Invalid."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Invalid("the body is not a JSON object", remedy=f"send the payload that {platform} sends")
    return found


def inner(payload: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a nested object, or an empty one."""
    found: Any = payload
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items(payload: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list."""
    found = payload.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def word(payload: Mapping[str, Any], name: str) -> str:
    """Return a string or integer as a string; empty for anything else."""
    found = payload.get(name)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return ""
    return str(found)


def ident(payload: Mapping[str, Any], name: str) -> str:
    """Return an id, which may be a string or a number."""
    return word(payload, name).strip()[:LONGEST_ID]


def seconds(payload: Mapping[str, Any], name: str) -> int:
    """Return a Unix time in whole seconds as microseconds; 0 if it is missing."""
    found = word(payload, name)
    return int(found) * SECOND if found.isascii() and found.isdigit() and len(found) <= 11 else 0
