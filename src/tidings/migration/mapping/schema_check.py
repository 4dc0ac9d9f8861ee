"""Checks a mapped record against the target's attributes before it is sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..connectors.port import Attribute
from ..job_file_section import nearest
from .mapped_record import MappedRecord, RejectedRecord, redacted


def schema_mismatch(
    type_: str, id_: str, mapped: MappedRecord, attributes: Mapping[str, Attribute]
) -> RejectedRecord | None:
    """Return a rejection for the first field that the target would not accept; None if all fit."""
    for name, value in mapped.fields.items():
        problem = _problem(name, value, attributes)
        if problem is not None:
            return RejectedRecord(type_, id_, name, redacted(value), *problem)
    for name, attribute in attributes.items():
        if attribute.required and mapped.fields.get(name) is None:
            return RejectedRecord(type_, id_, name, "missing", "required", "the target requires it")
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
                return "options", f"{redacted(entry)} is not one of the target's options"
    return None
