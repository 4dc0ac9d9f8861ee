"""Parses `[types.NAME]` of a job file; every key is checked before a record is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from ...inputs.timezones import parse_timezone
from ...model.errors import Invalid
from ..adaptive_batch_size import DEFAULT_BATCH_SIZE, DEFAULT_BATCH_SIZES, MAX_BATCH_SIZE, MIN_BATCH_SIZE
from ..job_file_section import JobFileSection, nearest
from .converters import EPOCHS, ConversionError, convert, is_missing
from .expressions import compile_expression
from .rules import LONGEST_TEXT, OWN_ID, FieldKind, FieldRule, OnError, OnMissing, OnUnresolved, TypeMap

TYPE_KEYS = (*("from", "to", "key", "after", "skip", "hook", "ignore", "group", "extra", "batch_size", "fields"),)
FIELD_KEYS = (
    *("path", "expression", "constant", "type", "required", "default", "values", "options", "reference"),
    *("unresolved", "many", "on_missing", "on_error", "timezone", "format", "max_length", "secret"),
)
_HOOK = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_FORMATTED = (FieldKind.DATE, FieldKind.TIME)


def read_type(name: str, raw: object, *, allow_hooks: bool) -> TypeMap:
    place = f"types.{name}"
    section = JobFileSection(raw, place, TYPE_KEYS)
    fields = section.tables("fields")
    if not fields:
        section.refuse("fields", "is missing", f'write [{place}.fields] and below it name = "path"')
    skip, target = section.text("skip"), section.text("to", name) or name
    size = DEFAULT_BATCH_SIZES.get("files" if target == "files" else name, DEFAULT_BATCH_SIZE)
    return TypeMap(
        name=name,
        source=section.text("from", name) or name,
        target=target,
        fields=tuple(read_field(f"{place}.fields", field, entry) for field, entry in fields.items()),
        key=section.text("key", OWN_ID) or OWN_ID,
        after=section.texts("after"),
        skip=None if skip is None else compile_expression(skip, f"{place}.skip"),
        hook=_hook(section, allow_hooks),
        ignore=frozenset(section.texts("ignore")),
        group=section.text("group"),
        extra=section.flag("extra"),
        batch_size=section.whole("batch_size", size, least=MIN_BATCH_SIZE, most=MAX_BATCH_SIZE),
        raw=section.raw,
    )


def check_links(types: Collection[TypeMap]) -> None:
    """Raise Invalid for references to types that the job does not have."""
    names = [one.name for one in types]
    for one in types:
        links = {f"fields.{rule.name}.reference": rule.reference for rule in one.fields if rule.reference}
        for key, named in [*links.items(), *(("after", other) for other in one.after)]:
            if named not in names:
                place = f"types.{one.name}.{key}"
                problem = f"{place} names {named!r}, which is not a type of the job"
                raise Invalid(problem, field=place, remedy=nearest(str(named), names))


def read_field(place: str, name: str, raw: object) -> FieldRule:
    """Parse one field; a text is its path."""
    if isinstance(raw, str):
        raw = {"path": raw}
    section = JobFileSection(raw, f"{place}.{name}", FIELD_KEYS)
    kind = section.choice("type", FieldKind.REFERENCE if "reference" in section.raw else FieldKind.TEXT)
    rule = FieldRule(
        name=name,
        kind=kind,
        **_origin(section, name),
        values=_values(section),
        options=section.texts("options"),
        reference=section.text("reference"),
        unresolved=section.choice("unresolved", OnUnresolved.WAIT),
        many=section.flag("many"),
        on_missing=_on_missing(section),
        on_error=section.choice("on_error", OnError.REFUSE),
        timezone=_zone(section),
        format=section.text("format", longest=100),
        max_length=section.whole("max_length", LONGEST_TEXT, least=1, most=100_000_000),
        secret=section.flag("secret"),
    )
    _check(section, rule)
    return _with_default(section, rule)


def _origin(section: JobFileSection, name: str) -> dict[str, Any]:
    """Return where the value comes from: path, expression or constant; by default the field of that name."""
    given = [key for key in ("path", "expression", "constant") if key in section.raw]
    if len(given) > 1:
        section.refuse(given[1], f"is combined with {given[0]}", "keep one of path, expression and constant")
    if "expression" in given:
        text = section.needed("expression", "emails[0].address")
        return {"expression": compile_expression(text, section.name("expression"))}
    if "constant" in given:
        if is_missing(section.raw["constant"]):
            section.refuse("constant", "is empty", 'write a value, or on_missing = "clear" with a path')
        return {"constant": section.raw["constant"]}
    return {"path": section.text("path", name)}


def _values(section: JobFileSection) -> Mapping[str, Any] | None:
    if "values" not in section.raw:
        return None
    table = JobFileSection(section.raw["values"], section.name("values")).raw
    if not table:
        section.refuse("values", "is empty", 'write values = { "source option" = "target option" }')
    for option, value in table.items():
        if not isinstance(value, str | int | float | bool):
            section.refuse("values", f"has {option!r}, not a plain value", "write a text or a number")
    return table


def _on_missing(section: JobFileSection) -> OnMissing:
    found = section.choice("on_missing", OnMissing.LEAVE)
    if not section.flag("required"):
        return found
    if "on_missing" in section.raw and found is not OnMissing.REFUSE:
        section.refuse("on_missing", f"is {found!r}, but the field is required", "keep one of them")
    return OnMissing.REFUSE


def _zone(section: JobFileSection) -> ZoneInfo | None:
    name = section.text("timezone")
    return None if name is None else parse_timezone(name, field=section.name("timezone"))


def _check(section: JobFileSection, rule: FieldRule) -> None:
    """Reject keys that contradict the type."""
    if (rule.kind is FieldKind.REFERENCE) != (rule.reference is not None):
        section.refuse("reference", "and type do not match", 'name the record type: reference = "companies"')
    if rule.reference is not None and ("default" in section.raw or rule.is_constant):
        section.refuse("reference", "has a default or a constant", 'use unresolved = "leave" instead')
    if rule.options and rule.kind is not FieldKind.SELECT:
        section.refuse("options", f"are not allowed for type {rule.kind}", 'write type = "select"')
    for key in ("timezone", "format"):
        if key in section.raw and rule.kind not in _FORMATTED:
            section.refuse(key, f"is not allowed for type {rule.kind}", 'use it with type = "date" or "time"')
    if "unresolved" in section.raw and rule.reference is None:
        section.refuse("unresolved", "is set on a field that is not a reference", "remove it")
    if rule.format is not None and rule.format not in EPOCHS and "%" not in rule.format:
        section.refuse("format", f"is {rule.format!r}", 'write "%d.%m.%Y", "epoch" or "epoch_ms"')
    if rule.on_error is OnError.DEFAULT and "default" not in section.raw:
        section.refuse("on_error", "is 'default', but there is no default", "write default = ...")
    if rule.values is not None and rule.options:
        for value in rule.values.values():
            if value not in rule.options:
                section.refuse("values", f"contain {value!r}, which is not an option", "add it there")


def _with_default(section: JobFileSection, rule: FieldRule) -> FieldRule:
    """Return the rule with default and constant converted to its type."""
    for key in ("default", "constant"):
        value = section.raw.get(key)
        if value is None:
            continue
        try:
            made = convert(value, rule)
        except ConversionError as error:
            section.refuse(key, str(error), f"write a {rule.kind}")
        if key == "default":
            rule = replace(rule, default=made)
    return rule


def _hook(section: JobFileSection, allowed: bool) -> str | None:
    name = section.text("hook", longest=200)
    if name is None:
        return None
    if not _HOOK.fullmatch(name):
        section.refuse("hook", f"is {name!r}", 'write hook = "module:function"')
    if not allowed:
        section.refuse("hook", "would run arbitrary code", "create the job from a file on the server")
    return name
