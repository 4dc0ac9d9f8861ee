"""Compares one record on both sides field by field, in the map's types. Pure."""

from __future__ import annotations

from typing import Any

from .connectors.port import Fields
from .mapping.content_hash import canonical_json
from .mapping.converters import is_missing
from .mapping.mapped_record import redacted
from .mapping.mapper import Mapper
from .verification_report import FieldChange


def changed_fields(mapper: Mapper, type_: str, expected: Fields, found: Fields | None) -> list[FieldChange]:
    """Return the fields that differ from the expected ones; unmapped fields are ignored."""
    if found is None:
        return []
    map_ = mapper.types[type_]
    rules = {rule.name: rule for rule in map_.fields}
    known = mapper.normalised(type_, found)
    wanted = expected if map_.hook is None else mapper.normalised(type_, expected)
    changed = []
    for name, value in expected.items():
        rule = rules.get(name)
        ours, theirs = (wanted[name], known[name]) if rule is not None else (value, found.get(name))
        if not _same(ours, theirs, in_any_order=rule is not None and rule.many):
            hidden = rule is not None and rule.secret
            changed.append(FieldChange(name, redacted(ours, secret=hidden), redacted(theirs, secret=hidden)))
    return changed


def _same(ours: Any, theirs: Any, *, in_any_order: bool) -> bool:
    if type(ours) is type(theirs) is str:
        return bool(ours == theirs)
    if is_missing(ours) or is_missing(theirs):
        return is_missing(ours) and is_missing(theirs)
    try:
        if in_any_order and isinstance(ours, list) and isinstance(theirs, list):
            return sorted(map(canonical_json, ours)) == sorted(map(canonical_json, theirs))
        return canonical_json(ours) == canonical_json(theirs)
    except ValueError:
        return bool(ours == theirs)
