"""Lint: what a map would lose or get wrong, found before the first record is migrated. Pure.

An error would stop every record or the job; a warning loses something that may matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from ..connectors.port import Attribute, Record
from ..job_file_section import nearest
from .dependency_order import cycle
from .rules import OWN_ID, FieldKind, FieldRule, OnMissing, TypeMap, has_path_root

Schema = Mapping[str, Sequence[Attribute] | None]
"""Attributes by the job's name of the type; None: the system does not list them."""

_ALL = frozenset(map(str, FieldKind))
_WIDENS: Mapping[str, frozenset[str]] = {
    "text": _ALL - {"json"},
    "json": _ALL,
    "number": frozenset({"number", "boolean"}),
    "time": frozenset({"time", "date"}),
    "select": frozenset({"select", "boolean"}),
    "reference": frozenset({"reference", "text", "number"}),
}  # types that convert without loss; others accept only their own


class LintLevel(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"


class LintFinding(NamedTuple):
    """One finding about a map."""

    level: LintLevel
    code: str
    type: str
    field: str | None
    text: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.type}.{self.field}" if self.field else self.type
        return f"{self.level}: {where}: {self.text}. {self.remedy} [{self.code}]"


_error, _warning = partial(LintFinding, LintLevel.ERROR), partial(LintFinding, LintLevel.WARNING)


def lint(types: Sequence[TypeMap], source: Schema, target: Schema) -> list[LintFinding]:
    """Return all findings, errors first."""
    found = list(_cycles(types))
    for one in types:
        there, here = source.get(one.name), target.get(one.name)
        if there is not None:
            found += _of_source(one, {attribute.name: attribute for attribute in there})
        if here is not None:
            found += _of_target(one, {attribute.name: attribute for attribute in here})
        if there is not None and here is not None:
            found += _between(one, there, here)
    return sorted(found, key=lambda finding: finding.level is not LintLevel.ERROR)


def missing_files(types: Sequence[str]) -> list[LintFinding]:
    """Return findings for types that are files in the target but not in the source."""
    text, remedy = "the target stores files, but the source has no content for them", "Read them from a type with files"
    return [_error("missing_content", name, None, text, remedy) for name in types]


def observed_attributes(records: Iterable[Record]) -> list[Attribute]:
    """Return the attributes that sample records show, for sources that do not list them."""
    seen: dict[str, set[str]] = {}
    many: set[str] = set()
    for record in records:
        for name, value in record.fields.items():
            kinds = seen.setdefault(name, set())
            many |= {name} if isinstance(value, list) else set()
            kinds |= {_kind(one) for one in (value if isinstance(value, list) else [value])} - {""}
    return [
        Attribute(name, kinds.copy().pop() if len(kinds) == 1 else "text", many=name in many)
        for name, kinds in seen.items()
    ]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, dict):
        return "json"
    return "text" if isinstance(value, str) else ""


def _cycles(types: Sequence[TypeMap]) -> Iterator[LintFinding]:
    names = cycle(types)
    if names:
        text = f"record types depend on each other: {' → '.join(names)}"
        remedy = 'Set unresolved = "leave" on one of the references'
        yield _error("cyclic_relation", names[0], None, text, remedy)


def missing_columns(one: TypeMap, there: Iterable[str]) -> Iterator[LintFinding]:
    """Yield findings for fields of the map that the source does not have."""
    names = list(there)
    for rule in one.fields:
        if rule.path is not None and not has_path_root(rule.path, names):
            text = f"the source has no field {rule.path!r}"
            remedy = _capital(nearest(rule.path, names))
            yield _error("missing_column", one.name, rule.name, text, remedy)
        elif rule.reference is not None and (unread := sorted(rule.reads - set(names))):
            for path in unread if rule.expression is not None else ():
                text = f"the links cannot be read: the source has no field {path!r}"
                yield _error("unreadable_relation", one.name, rule.name, text, _capital(nearest(path, names)))


def _of_source(one: TypeMap, there: Mapping[str, Attribute]) -> Iterator[LintFinding]:
    read = {name for rule in one.fields for name in rule.reads} | {one.key}
    read |= one.skip.reads if one.skip is not None else set()
    read |= {"id"} if OWN_ID in {one.key, *(rule.path for rule in one.fields)} else set()
    yield from missing_columns(one, there)
    for name, attribute in there.items():
        if name in one.ignore or any(path == name or path.partition(".")[0] == name for path in read):
            continue
        if attribute.type in ("date", "time"):
            text = f"the source's {name!r} is not mapped: the target will show the date of the migration"
            yield _warning("lost_timestamp", one.name, name, text, "Map it, or list it under ignore")
        else:
            text = f"the source's {name!r} is not mapped"
            yield _warning("unmapped_field", one.name, name, text, "Map it, or list it under ignore")


def _of_target(one: TypeMap, here: Mapping[str, Attribute]) -> Iterator[LintFinding]:
    for rule in one.fields:
        attribute = here.get(rule.name)
        if attribute is None:
            text = f"the target has no attribute {rule.name!r}"
            remedy = _capital(nearest(rule.name, here))
            yield _error("unknown_attribute", one.name, rule.name, text, remedy)
        elif attribute.type == "select" and attribute.options:
            yield from _options(one, rule, attribute)
    written = {rule.name: rule for rule in one.fields}
    for name, attribute in here.items():
        rule_of = written.get(name)
        if not attribute.required or (rule_of is None and one.hook is not None):
            continue
        if rule_of is None:
            text = "the target requires it, but the map does not write it"
            yield _error("required_attribute", one.name, name, text, "Map it")
        elif not (rule_of.on_missing is OnMissing.REFUSE or rule_of.default is not None or rule_of.is_constant):
            text = "the target requires it, but the source may have no value"
            remedy = "Set required = true or a default"
            yield _warning("required_attribute", one.name, name, text, remedy)


def _options(one: TypeMap, rule: FieldRule, attribute: Attribute) -> Iterator[LintFinding]:
    """Yield findings for options that the map can write but the target does not have."""
    written = list(rule.values.values()) if rule.values is not None else list(rule.options)
    written += [value for value in (rule.constant, rule.default) if value is not None]
    flat = [one for value in written for one in (value if isinstance(value, list) else [value])]
    for value in dict.fromkeys(map(str, flat)):
        if value not in attribute.options:
            text = f"the target has no option {value!r}"
            remedy = _capital(nearest(value, attribute.options))
            yield _error("unknown_option", one.name, rule.name, text, remedy)


def _between(one: TypeMap, there: Sequence[Attribute], here: Sequence[Attribute]) -> Iterator[LintFinding]:
    """Yield findings for values that one side can hold and the other cannot."""
    sources = {attribute.name: attribute for attribute in there}
    targets = {attribute.name: attribute for attribute in here}
    for rule in one.fields:
        origin, goal = sources.get(rule.path or ""), targets.get(rule.name)
        if goal is None or origin is None:
            continue
        yield from _unmapped_options(one, rule, origin, goal)
        if rule.values is None and origin.type not in {goal.type} | _WIDENS.get(goal.type, frozenset()):
            text = f"{origin.type} becomes {goal.type}: values that do not fit are rejected"
            if (origin.type, goal.type) == ("time", "date"):
                text = "time becomes date: the time of day is lost"
            yield _warning("type_narrowing", one.name, rule.name, text, "Check that this is intended")
        if origin.many and not (goal.many and rule.many):
            text = "a list becomes one value"
            remedy = "Set many = true" if goal.many else "Choose one by its path, such as emails.0"
            yield _warning("type_narrowing", one.name, rule.name, text, remedy)


def _unmapped_options(one: TypeMap, rule: FieldRule, origin: Attribute, goal: Attribute) -> Iterator[LintFinding]:
    if origin.type != "select" or (rule.values is not None and "*" in rule.values):
        return
    known = set(rule.values) if rule.values is not None else set(goal.options) or set(origin.options)
    for option in origin.options:
        if option not in known:
            text = f"the source's option {option!r} is not mapped: records with it will be rejected"
            remedy = 'Add it to values, or "*" for all others'
            yield _error("unmapped_option", one.name, rule.name, text, remedy)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
