"""A mapped record against the target's attributes: what the target would refuse, said beforehand. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..section import nearest
from ..words import Attribute
from .result import Mapped, Refused, shown


def misfit(type_: str, id_: str, mapped: Mapped, attributes: Mapping[str, Attribute]) -> Refused | None:
    """The first field that the target would refuse; None: it fits."""
    for name, value in mapped.fields.items():
        problem = _problem(name, value, attributes)
        if problem is not None:
            return Refused(type_, id_, name, shown(value), *problem)
    for name, attribute in attributes.items():
        if attribute.required and mapped.fields.get(name) is None:
            return Refused(type_, id_, name, "missing", "required", "the target requires it")
    return None


def _problem(name: str, value: Any, attributes: Mapping[str, Attribute]) -> tuple[str, str] | None:
    attribute = attributes.get(name)
    if attribute is None:
        return "attribute", f"the target has no such attribute: {nearest(name, attributes)}"
    if value is None:
        return ("required", "the target requires it") if attribute.required else None
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not attribute.many and attribute.type != "json":
        return "many", "the target takes one value, not a list"
    if attribute.type == "select" and attribute.options:
        for entry in entries:
            if str(entry) not in attribute.options:
                return "options", f"{shown(entry)} is none of the target's options"
    return None
