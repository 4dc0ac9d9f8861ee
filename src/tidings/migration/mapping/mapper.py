"""The mapper: applies the rules of a type to one record. Pure, except for user hooks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from ...model.errors import Invalid
from ..connectors.port import ConnectorError, ErrorKind, Fields, Record
from ..job_file_section import nearest
from ..record_states import RecordState
from .content_hash import canonical_json, content_digest
from .converters import ConversionError, as_text, convert, is_missing
from .expressions import ExpressionError
from .mapped_record import DroppedValue, FieldChange, MappedRecord, RecordLink, RejectedRecord, TargetIdLookup, redacted
from .rules import FieldKind, FieldRule, OnError, OnMissing, OnUnresolved, TypeMap, has_path_root, value_at

LONGEST_KEY = 500

Hook = Callable[[Record, dict[str, Any]], dict[str, Any] | None]
"""Takes the record and the mapped fields, returns the fields to write; None skips the record."""


class _MappingStopped(Exception):
    """Mapping of this record stops here."""

    def __init__(
        self,
        rule: str,
        reason: str,
        *,
        failure: ErrorKind | None = ErrorKind.VALIDATION,
        state: RecordState = RecordState.REJECTED,
    ) -> None:
        super().__init__(reason)
        self.rule, self.reason, self.failure, self.state = rule, reason, failure, state
        self.field: str | None = None
        self.value = ""

    def at(self, rule: FieldRule, value: Any) -> _MappingStopped:
        self.field, self.value = rule.name, redacted(value, secret=rule.secret)
        return self


def _skip(rule: str, reason: str) -> _MappingStopped:
    return _MappingStopped(rule, reason, failure=None, state=RecordState.SKIPPED)


class _MappingState:
    """Fields, links and dropped values collected so far."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.relations: list[RecordLink] = []
        self.lost: list[DroppedValue] = []


class Mapper:
    """Maps records of a job. A record's type is the job's name for it."""

    def __init__(self, types: Iterable[TypeMap]) -> None:
        self.types = {one.name: one for one in types}
        self._hooks = {
            one.name: _load_hook(one.hook, f"types.{one.name}.hook")
            for one in self.types.values()
            if one.hook is not None
        }

    def map(self, record: Record, lookup: TargetIdLookup) -> MappedRecord | RejectedRecord:
        """Map a record; return the fields to write, or which rule rejected which field and why."""
        try:
            return self._mapped(self._type(record.type), record, lookup)
        except _MappingStopped as stop:
            return RejectedRecord(
                record.type, record.id, stop.field, stop.value, stop.rule, stop.reason, stop.failure, stop.state,
                stop.__cause__,
            )  # fmt: skip

    def key(self, record: Record) -> str | None:
        """Return the record's key in the target, even if it cannot be mapped; None: it has no key."""
        try:
            return _key(self._type(record.type), record)
        except _MappingStopped:
            return None

    def references(self, record: Record) -> list[tuple[str, str]]:
        """Return type and id of each record that `lookup` will be asked for, so they can be read at once."""
        return [(type_, id_) for _, type_, id_ in self.links(record)]

    def links(self, record: Record) -> list[tuple[str, str, str]]:
        """Return the links of a record: field, linked type, source id."""
        asked: list[tuple[str, str, str]] = []
        for rule in self._type(record.type).fields:
            if rule.reference is None:
                continue
            try:
                value = _read(record, rule)
                made = None if is_missing(value) else convert(_translated(value, rule), rule)
            except (_MappingStopped, ConversionError):
                continue  # `map` reports it
            ids = made if isinstance(made, list) else [made]
            asked += [(rule.name, rule.reference, str(one)) for one in ids if one]
        return asked

    def normalised(self, type_: str, fields: Fields) -> dict[str, Any]:
        """Return the mapped fields of a target record in canonical form; others unchanged."""
        found: dict[str, Any] = {}
        for rule in self._type(type_).fields:
            value = fields.get(rule.name)
            try:
                found[rule.name] = None if is_missing(value) else convert(value, _plainly(rule))
            except ConversionError:
                found[rule.name] = value
        return found

    def changed_fields(self, type_: str, expected: Fields, found: Fields | None) -> list[FieldChange]:
        """Return the fields in the target that differ from the expected ones; unmapped fields are ignored."""
        if found is None:
            return []
        map_ = self.types[type_]
        rules = {rule.name: rule for rule in map_.fields}
        known = self.normalised(type_, found)
        wanted = expected if map_.hook is None else self.normalised(type_, expected)
        changed = []
        for name, value in expected.items():
            rule = rules.get(name)
            ours, theirs = (wanted[name], known[name]) if rule is not None else (value, found.get(name))
            if not _same(ours, theirs, in_any_order=rule is not None and rule.many):
                hidden = rule is not None and rule.secret
                changed.append(FieldChange(name, redacted(ours, secret=hidden), redacted(theirs, secret=hidden)))
        return changed

    def _type(self, name: str) -> TypeMap:
        found = self.types.get(name)
        if found is None:
            raise Invalid(f"the job has no type {name!r}", field="types", remedy=nearest(name, self.types))
        return found

    def _mapped(self, type_: TypeMap, record: Record, lookup: TargetIdLookup) -> MappedRecord:
        if type_.skip is not None:
            try:
                left_out = type_.skip.search(record.fields)
            except ExpressionError as error:
                raise _MappingStopped("skip", f"the expression failed: {error}") from None
            if left_out:
                raise _skip("skip", f"skipped by {type_.skip.text}")
        found = _MappingState()
        key = _key(type_, record)
        for rule in type_.fields:
            _take(rule, record, lookup, found)
        fields = self._hooked(type_, record, found.fields)
        try:
            content = content_digest(fields)
        except (ValueError, RecursionError) as error:
            raise _MappingStopped("hook", f"the hook's result {error}", failure=ErrorKind.PROGRAM) from None
        return MappedRecord(key, fields, content, tuple(found.relations), tuple(found.lost))

    def _hooked(self, type_: TypeMap, record: Record, fields: dict[str, Any]) -> dict[str, Any]:
        hook = self._hooks.get(type_.name)
        if hook is None:
            return fields
        try:
            given = hook(record, dict(fields))
        except ConnectorError as error:
            stop = _MappingStopped(f"hook {type_.hook}", error.reason, failure=error.failure)
            stop.field, stop.value = error.field, redacted(fields.get(error.field or ""))
            raise stop from error
        except Exception as error:  # user code runs here: whatever it raises is its error
            reason = f"{type(error).__name__}: {error}"[:300]
            raise _MappingStopped(f"hook {type_.hook}", reason, failure=ErrorKind.PROGRAM) from error
        if given is None:
            raise _skip(f"hook {type_.hook}", "skipped by the hook")
        if not isinstance(given, dict):
            reason = f"the hook returned {type(given).__name__}, not fields"
            raise _MappingStopped(f"hook {type_.hook}", reason, failure=ErrorKind.PROGRAM)
        return given


def _load_hook(name: str, place: str) -> Hook:
    """Import the function that `module:function` names; raises Invalid."""
    module, _, function = name.partition(":")
    remedy = "install the module where the workers run, or add its folder to PYTHONPATH"
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as error:  # user code runs here: report whatever it raises
        problem = f"{place}: {module} cannot be imported ({type(error).__name__}: {error})"
        raise Invalid(problem[:300], field=place, remedy=remedy) from None
    if not callable(found):
        raise Invalid(f"{place}: {module} has no function {function}", field=place, remedy="check its name")
    return found  # type: ignore[no-any-return]


def _key(type_: TypeMap, record: Record) -> str:
    value = value_at(record, type_.key)
    rule = _key_rule(type_.key)
    try:
        key = "" if is_missing(value) else convert(value, rule)
    except ConversionError as error:
        raise _MappingStopped("key", f"it {error}").at(rule, value) from None
    if not key or len(key) > LONGEST_KEY:
        reason = "the record has no key" if not key else f"a key has at most {LONGEST_KEY} characters"
        raise _MappingStopped("key", reason).at(rule, value)
    return str(key)


@lru_cache(maxsize=1000)
def _key_rule(path: str) -> FieldRule:
    return FieldRule(path, FieldKind.REFERENCE, path=path)


def _take(rule: FieldRule, record: Record, lookup: TargetIdLookup, found: _MappingState) -> None:
    """Map one field into `found`, or raise _MappingStopped."""
    value = None
    try:
        value = _read(record, rule)
        if is_missing(value):
            _absent(rule, record, found)
            return
        made = convert(_translated(value, rule), rule)
        if is_missing(made):
            _absent(rule, record, found)
            return
        if rule.reference is not None:
            made = _resolved(rule, made, lookup, found)
        if made is not None:
            found.fields[rule.name] = made
    except ConversionError as error:
        _unusable(rule, value, _MappingStopped(rule.kind, f"it {error}"), found)
    except _MappingStopped as stop:
        _unusable(rule, value, stop, found)


def _unusable(rule: FieldRule, value: Any, stop: _MappingStopped, found: _MappingState) -> None:
    """Apply `on_error` to a value that cannot be used; dependencies still wait."""
    stop.at(rule, value)
    if stop.failure is not ErrorKind.VALIDATION or rule.on_error is OnError.REFUSE or stop.rule == "required":
        raise stop
    if rule.on_error is OnError.SKIP:
        raise _skip(stop.rule, stop.reason).at(rule, value)
    found.lost.append(DroppedValue(rule.name, stop.value, stop.rule, stop.reason))
    if rule.on_error is OnError.DEFAULT:
        found.fields[rule.name] = rule.default


def _read(record: Record, rule: FieldRule) -> Any:
    if rule.expression is not None:
        try:
            return rule.expression.search(record.fields)
        except ExpressionError as error:
            raise _MappingStopped("expression", f"{rule.expression.text} failed: {error}") from None
    return rule.constant if rule.path is None else value_at(record, rule.path)


def _absent(rule: FieldRule, record: Record, found: _MappingState) -> None:
    if rule.default is not None:
        found.fields[rule.name] = rule.default
    elif rule.on_missing is OnMissing.CLEAR:
        found.fields[rule.name] = None
    elif rule.on_missing is OnMissing.SKIP:
        raise _skip("on_missing", "the source has no value")
    elif rule.on_missing is OnMissing.REFUSE:
        reason = "it is required, but the source has no value"
        if rule.path is not None and not has_path_root(rule.path, record.fields):
            reason = f"it is required, but the record has no field {rule.path!r}"
            reason += f" ({nearest(rule.path, list(record.fields)[:50])})" if record.fields else ""
        raise _MappingStopped("required", reason)


def _translated(value: Any, rule: FieldRule) -> Any:
    """Replace a source option by the target's, from `values`."""
    if rule.values is None:
        return value
    if isinstance(value, list | tuple) and rule.many:
        return [_translated(one, rule) for one in value]
    word = as_text(value)
    for option in (word, word.strip(), "*"):
        if option in rule.values:
            return rule.values[option]
    raise _MappingStopped("values", '`values` does not contain it: add it, or "*" for all others')


def _resolved(rule: FieldRule, made: Any, lookup: TargetIdLookup, found: _MappingState) -> Any:
    """Replace source ids by target ids; None if the link is written later."""
    ids: Sequence[str] = made if rule.many else [made]
    links = [RecordLink(rule.name, str(rule.reference), one, lookup(str(rule.reference), one)) for one in ids]
    found.relations += links
    missing = next((link for link in links if link.target_id is None), None)
    if missing is not None and rule.unresolved is not OnUnresolved.LEAVE:
        reason = f"{missing.type} {missing.source_id} is not in the target"
        if rule.unresolved is OnUnresolved.REFUSE:
            raise _MappingStopped("reference", reason)
        reason = f"{reason} yet"
        raise _MappingStopped("reference", reason, failure=ErrorKind.DEPENDENCY, state=RecordState.WAITING)
    known = [link.target_id for link in links if link.target_id is not None]
    if rule.many:
        return known
    return known[0] if known else None


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


def _plainly(rule: FieldRule) -> FieldRule:
    """Return a rule for values that are already in canonical form."""
    return FieldRule(rule.name, rule.kind, many=rule.many, max_length=1 << 40)
