"""Parses job files (TOML, YAML, JSON) into a frozen MigrationJob; anything unknown is rejected with a remedy.

The API takes the same definition as JSON. A job is stored as written, with references to credentials, and
parsed again where it runs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import orjson

from ..model.errors import Invalid, Misconfigured
from .connectors.port import SystemLimits
from .connectors.registry import connector
from .credentials import refuse_plaintext_secrets
from .job_file_section import JobFileSection, nearest
from .mapping.content_hash import MAX_DEPTH, content_digest
from .mapping.dependency_order import waves
from .mapping.map_parser import check_links, read_type
from .mapping.rules import TypeMap
from .retry_policy import JobRetryPolicy, parse_retry_policy

LARGEST_FILE = 4_000_000  # bytes
SOFT, HARD = timedelta(minutes=50), timedelta(hours=1)  # time limits of one attempt at a batch
KEYS = ("name", "tenant", "priority", "source", "target", "types", "retry", "limits", "not_migrated")
PRIORITY = 5
_COUNT_LIMITS = {"per_month": 1_000_000_000, "concurrency": 1000, "bulk": 10_000}
LIMIT_KEYS = (*("reads_per_second", "writes_per_second"), *_COUNT_LIMITS, *("soft_limit", "hard_limit"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_HASH_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SystemConfig:
    """One side of a job: connector kind and options, credentials by reference."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None  # its identity across jobs; None: kind, place and account


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The job's own limits; None: those of the system."""

    reads_per_second: float | None = None
    writes_per_second: float | None = None
    per_month: int | None = None
    concurrency: int | None = None
    bulk: int | None = None
    soft: timedelta = SOFT
    hard: timedelta = HARD

    def within(self, system: SystemLimits) -> SystemLimits:
        """Return the stricter of the system's limits and the job's."""
        return SystemLimits._make(_least(limit, getattr(self, name)) for name, limit in system._asdict().items())


@dataclass(frozen=True, slots=True)
class MigrationJob:
    """A migration job. `definition` is what it was parsed from; it can be stored and parsed again."""

    name: str
    tenant: str
    priority: int  # 0 to 9: lower runs first
    source: SystemConfig
    target: SystemConfig
    types: tuple[TypeMap, ...]
    retry: JobRetryPolicy
    caps: JobLimits
    not_migrated: Mapping[str, str]  # source types that are not migrated, and why
    mapping_hash: str
    definition: Mapping[str, Any] = field(repr=False)
    is_local: bool = False  # from a file on the command line, so by the operator

    @property
    def waves(self) -> Sequence[Sequence[str]]:
        """Type names in waves by their references."""
        return waves(self.types)

    def type(self, name: str) -> TypeMap:
        """Return one type by name; raises Invalid."""
        for one in self.types:
            if one.name == name:
                return one
        known = [one.name for one in self.types]
        raise Invalid(f"the job has no type {name[:60]!r}", field="type", remedy=nearest(name, known))


def read_job_file(path: Path) -> MigrationJob:
    """Parse a job file; it has the operator's rights and may use hooks."""
    parsers: Mapping[str, Callable[[str], object]] = {
        ".toml": tomllib.loads,
        ".yaml": _parse_yaml,
        ".yml": _parse_yaml,
        ".json": orjson.loads,
    }
    parse = parsers.get(path.suffix.lower())
    if parse is None:
        remedy = "use the suffix .toml, .yaml or .json"
        raise Invalid(f"{path.name!r} is not a job file", field="file", remedy=remedy)
    try:
        if path.stat().st_size > LARGEST_FILE:
            remedy = f"the limit is {LARGEST_FILE // 1_000_000} MB"
            raise Invalid(f"{path} is too large", field="file", remedy=remedy)
        raw = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
        raise Invalid(problem, field="file", remedy="check the path") from None
    except RecursionError:
        raise Invalid(f"{path} is nested too deeply", field="file", remedy="reduce its nesting") from None
    except ValueError as error:  # invalid TOML or JSON, or not UTF-8
        reason = " ".join(str(error).split())[:200]
        raise Invalid(f"{path} cannot be read: {reason}", field="file", remedy="correct that line") from None
    return read_job(raw, is_local=True)


def _parse_yaml(text: str) -> Any:
    """Parse plain values; ValueError if it is not YAML, or uses duplicate keys or aliases. Needs tidings[yaml]."""
    try:
        import yaml
    except ImportError:
        remedy = "install tidings[yaml], or use TOML"
        raise Invalid("YAML support is not installed", field="file", remedy=remedy) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise ValueError(f"line {line} has an alias (*): write the value out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in seen:
                    raise ValueError(f"line {key.start_mark.line + 1} repeats the key {key.value!r}")
                seen.add(str(key.value))
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader)  # a SafeLoader: plain values only
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def read_job(raw: object, *, is_local: bool = False) -> MigrationJob:
    """Parse a definition; unless it is local, it may not run code (hooks)."""
    definition = _plain(raw, "", 0)
    section = JobFileSection(definition, "", KEYS)
    tables = section.tables("types")
    if not tables:
        section.refuse("types", "is missing", "write [types.people.fields] and the fields below it")
    types = tuple(_type(name, table, is_local) for name, table in tables.items())
    check_links(types)
    waves(types)
    return MigrationJob(
        name=section.needed("name", "affinity to attio")[:200],
        tenant=_tenant(section),
        priority=section.whole("priority", PRIORITY, least=0, most=9),
        source=_system(section, "source"),
        target=_system(section, "target"),
        types=types,
        retry=parse_retry_policy(definition.get("retry", {})),
        caps=_caps(definition.get("limits", {})),
        not_migrated=_not_migrated(section, types),
        mapping_hash=content_digest({one.name: one.raw for one in types})[:_HASH_LENGTH],
        definition=definition,
        is_local=is_local,
    )


def _type(name: str, table: object, allow_hooks: bool) -> TypeMap:
    if not _NAME.fullmatch(name):
        remedy = "use letters, digits, - and _, at most 63 of them; the source's own name goes into from"
        raise Invalid(f"the type name {name[:60]!r} cannot be used", field="types", remedy=remedy)
    return read_type(name, table, allow_hooks=allow_hooks)


def _tenant(section: JobFileSection) -> str:
    tenant = section.text("tenant", "default") or "default"
    if not _NAME.fullmatch(tenant):
        section.refuse("tenant", f"is {tenant[:60]!r}", "use letters, digits, - and _, at most 63 of them")
    return tenant


def _system(section: JobFileSection, side: str) -> SystemConfig:
    part = JobFileSection(section.raw.get(side, {}), side)
    kind = part.needed("kind", "ndjson")
    options = {name: value for name, value in part.raw.items() if name not in ("kind", "name")}
    try:
        known = connector(kind, place=side)
    except Misconfigured as error:
        raise Invalid(error.problem, field=f"{side}.kind", remedy=error.remedy) from None
    if getattr(known, side) is None:
        part.refuse("kind", f"is {kind!r}, which cannot be a {side}", "choose another kind")
    JobFileSection(options, side, known.options)
    refuse_plaintext_secrets(options, side, known.secrets)
    return SystemConfig(kind, options, part.text("name", longest=100))


def _caps(raw: object) -> JobLimits:
    section = JobFileSection(raw, "limits", LIMIT_KEYS)
    soft, hard = section.length("soft_limit", SOFT), section.length("hard_limit", HARD)
    if soft >= hard:
        section.refuse("soft_limit", "is not shorter than hard_limit", 'write soft_limit = "50m"')
    reads, writes = (section.number(key, None, most=1e6) for key in LIMIT_KEYS[:2])
    counts = {
        key: section.whole(key, 1, least=1, most=most) for key, most in _COUNT_LIMITS.items() if key in section.raw
    }
    return JobLimits(reads, writes, **counts, soft=soft, hard=hard)


def _not_migrated(section: JobFileSection, types: Sequence[TypeMap]) -> Mapping[str, str]:
    part = JobFileSection(section.raw.get("not_migrated", {}), "not_migrated")
    moved = {one.source for one in types}
    for name in part.raw:
        if name in moved:
            part.refuse(name, "is migrated by one of the types", "keep one of them")
        part.needed(name, "why it is not migrated")
    return dict(part.raw)


def _plain(value: Any, place: str, depth: int) -> Any:
    """Convert the definition to JSON values; dates of TOML and YAML become texts."""
    if depth > MAX_DEPTH:
        raise Invalid(f"{place[:200]} is nested too deeply", field=place[:60], remedy="reduce its nesting")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                problem = f"{place or 'the job'} has the key {name!r}, which is not a text"
                raise Invalid(problem, field=place or None, remedy="write it in quotes")
        return {name: _plain(one, f"{place}.{name}".lstrip("."), depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, place, depth + 1) for entry in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise Invalid(f"{place} is not a plain value", field=place, remedy="write a text, a number or a table")


def _least(*limits: Any) -> Any:
    given = [limit for limit in limits if limit is not None]
    return min(given) if given else None
