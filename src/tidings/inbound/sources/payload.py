"""Reading what platforms send: every field may be missing or of another type than promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.time import SECOND

LONGEST_ID = 256


def inner(payload: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """An object within an object, or an empty one."""
    found: Any = payload
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items(payload: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    found = payload.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def word(payload: Mapping[str, Any], name: str) -> str:
    """A text or a number as text; empty when it is neither."""
    found = payload.get(name)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return ""
    return str(found)


def ident(payload: Mapping[str, Any], name: str) -> str:
    """An id: ids of one platform come as texts and as numbers."""
    return word(payload, name).strip()[:LONGEST_ID]


def seconds(payload: Mapping[str, Any], name: str) -> int:
    """A Unix time in whole seconds, as microseconds; 0 when there is none."""
    found = word(payload, name)
    return int(found) * SECOND if found.isascii() and found.isdigit() and len(found) <= 11 else 0
