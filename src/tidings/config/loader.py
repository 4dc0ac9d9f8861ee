"""Loads the configuration; unknown or invalid settings raise Misconfigured.

Three sources, the last one wins: a TOML file (./tidings.toml, or the file named by --config or
TIDINGS_CONFIG), the environment (TIDINGS_PORT, TIDINGS_CHANNELS__PHONE__URL), and command-line flags.
Settings that keep their default are not in `origins`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..inputs.plugins import hint
from ..kernel import retry
from ..migration.credentials import Credential
from ..model.errors import Misconfigured
from ..outbound.alerts.rules import AlertThresholds, ThresholdUnit
from ..outbound.imports.settings import ImportSettings, read_import
from ..outbound.tenant_quotas import read_tenant_limits
from . import parsers
from .secret_references import SecretReferences
from .secrets import is_secret
from .settings import DEFAULT_CHANNELS, SETTING_PARSERS, ChannelSettings, InboundSettings, Settings

DEFAULT_FILE = "tidings.toml"

PREFIX = "TIDINGS_"

NOT_SETTINGS = (
    "TIDINGS_CONFIG",
    "TIDINGS_DEBUG",
    "TIDINGS_LOCAL_MODEL_ONLY",
    "TIDINGS_TEST_",
    "TIDINGS_CRASH_",
)  # prefixes of variables that are not settings

_LISTS = frozenset(
    {"api_keys", "encryption_keys", "trusted_proxies", "events_secrets", "alert_to", "broker_channels"}
    | {"migration_queues"}
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def load(
    config: str | Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    needs_channel_secrets: bool = True,
) -> Settings:
    """Read all sources into Settings; raise Misconfigured with setting, origin and remedy.

    `flags` maps names of settings to values; None means that the flag was not given. Without
    `needs_channel_secrets`, an unset secret of a channel or source raises only when it is used.
    """
    environ = os.environ if environ is None else environ
    path = _find(config, environ, folder or Path())
    loader = _SettingsLoader(environ, path, folder or Path(), may_be_missing=not needs_channel_secrets)
    if path:
        loader.add_file(path)
    loader.add_environment()
    for name, value in (flags or {}).items():
        if value is not None:
            loader.add(name, value, f"--{name.replace('_', '-')}")
    return loader.settings()


class _SettingsLoader:
    """Collects raw values with their origins, and parses them into Settings."""

    def __init__(self, environ: Mapping[str, str], path: Path | None, folder: Path, *, may_be_missing: bool) -> None:
        self._environ = environ
        self._may_be_missing = may_be_missing
        self._folder = path.parent if path else folder
        self._references = SecretReferences(environ, path, self._folder)
        self._values: dict[str, tuple[object, str]] = {}
        self._channels: dict[str, dict[str, tuple[object, str]]] = {}
        self._policies: dict[str, tuple[object, str]] = {}
        self._tenants: dict[str, Mapping[str, Any]] = {}
        self._inbound: list[tuple[tuple[str, ...], object, str]] = []  # path, value, origin
        self._alerts: dict[str, tuple[object, str]] = {}
        self._credentials: dict[str, tuple[object, str]] = {}
        self._imports: dict[str, tuple[object, str]] = {}

    def add_file(self, path: Path) -> None:
        """Add every setting of the TOML file."""
        origin = str(path)
        tables: dict[str, dict[str, tuple[object, str]]] = {
            "alerts": self._alerts, "credentials": self._credentials, "policies": self._policies,
            "imports": self._imports,
        }  # fmt: skip
        for name, raw in _read_toml(path).items():
            if name in tables:
                tables[name] |= {key: (value, origin) for key, value in _table(raw, name, origin).items()}
            elif name == "inbound":
                self._inbound += [((key,), value, origin) for key, value in _table(raw, name, origin).items()]
            elif name == "tenants":
                for key, options in _table(raw, name, origin).items():
                    self._tenants[key] = _table(options, f"tenants.{key}", origin)
            elif name == "channels":
                for key, options in _table(raw, name, origin).items():
                    self._add_channel(key, _table(options, f"channels.{key}", origin), origin)
            else:
                self.add(name, raw, origin)

    def add_environment(self) -> None:
        """Add every variable with the prefix TIDINGS_; unknown ones raise Misconfigured."""
        for variable, raw in self._environ.items():
            if not variable.startswith(PREFIX) or variable.startswith(NOT_SETTINGS):
                continue
            first, *rest = variable.removeprefix(PREFIX).lower().split("__")
            if first == "channels" and len(rest) == 2 and all(rest):
                self._add_channel(self._channel_like(rest[0]), {rest[1]: raw}, variable)
            elif first == "inbound" and rest and all(rest):
                self._inbound.append((tuple(rest), raw, variable))
            elif first == "alerts" and len(rest) == 1:
                self._alerts[rest[0]] = (raw, variable)
            else:
                self.add("__".join((first, *rest)), raw, variable)

    def add(self, name: str, raw: object, origin: str) -> None:
        """Add one setting of the top level; the last origin wins."""
        if name not in SETTING_PARSERS:
            known = (*SETTING_PARSERS, "channels", "policies", "tenants", "inbound", "alerts", "credentials", "imports")
            spelled = [PREFIX + key.upper() for key in known] if origin.startswith(PREFIX) else list(known)
            given = origin if origin.startswith(PREFIX) else name
            remedy = hint(given, spelled)
            if name.partition("__")[0] in ("channels", "policies"):
                remedy = f"Write {PREFIX}CHANNELS__NAME__OPTION for channels; policies are set in the file"
            where = "the environment" if origin.startswith(PREFIX) else origin
            raise Misconfigured(f"unknown setting {given!r} in {where}", remedy=remedy, field=name)
        self._values[name] = (raw, origin)

    def settings(self) -> Settings:
        """Parse all collected values."""
        given = {name: self._parse(name, *added) for name, added in self._values.items()}
        if self._channels:
            given["channels"] = {name: self._channel(name) for name in self._channels}
        given["policies"] = {name: _policy(name, *added) for name, added in self._policies.items()}
        if self._inbound:
            given["inbound"] = _inbound(self._inbound_table(), self._folder)
        given["alerts"] = _thresholds(self._alerts)
        given["credentials"] = {name: self._credential(name, *added) for name, added in self._credentials.items()}
        given["imports"] = {name: self._import(name, *added) for name, added in self._imports.items()}
        origins = {name: origin for name, (_, origin) in self._values.items()}
        origins |= {f"alerts.{name}": origin for name, (_, origin) in self._alerts.items()}
        channels = given.get("channels", DEFAULT_CHANNELS)
        given["tenants"] = {name: read_tenant_limits(name, its, channels) for name, its in self._tenants.items()}
        settings = Settings(**given, origins=origins)
        _check_policies(settings)
        self._references.check_file_mode()
        return settings

    def _parse(self, name: str, raw: object, origin: str) -> Any:
        if name in _LISTS and isinstance(raw, str):
            raw = [key.strip() for key in raw.split(",") if key.strip()]
        try:
            return SETTING_PARSERS[name](self._references.resolve(raw, name, origin, secret=is_secret(name)))
        except parsers.InvalidSetting as error:
            raise Misconfigured(f"{name} in {origin} {error}", remedy=error.remedy, field=name) from None

    def _add_channel(self, name: str, options: Mapping[str, Any], origin: str) -> None:
        if not _NAME.fullmatch(name):
            remedy = "Use up to 63 letters, digits, - and _"
            raise Misconfigured(f"invalid channel name {name!r} in {origin}", remedy=remedy)
        self._channels.setdefault(name, {}).update({key: (raw, origin) for key, raw in options.items()})

    def _channel_like(self, name: str) -> str:
        """Return the channel that a variable names, which cannot have - or lowercase letters."""
        return next((own for own in self._channels if own.lower().replace("-", "_") == name), name)

    def _channel(self, name: str) -> ChannelSettings:
        added = dict(self._channels[name])
        kind, _ = added.pop("kind", (DEFAULT_CHANNELS.get(name), ""))
        if not isinstance(kind, str) or not kind:
            remedy = 'Add kind = "webhook", or another channel kind'
            raise Misconfigured(f"channels.{name} has no kind", remedy=remedy, field=f"channels.{name}.kind")
        options = {
            key: self._references.resolve(
                raw, f"channels.{name}.{key}", origin, secret=is_secret(key), may_be_missing=self._may_be_missing
            )
            for key, (raw, origin) in added.items()
        }
        return ChannelSettings(kind, MappingProxyType(options))

    def _credential(self, name: str, raw: object, origin: str) -> Credential:
        """Parse one credential for migrations created through the API."""
        place = f"credentials.{name}"
        table = _table(raw, place, origin)
        problem, remedy = "", 'Write value = "env:NAME" and hosts = ["api.example.com"]'
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name):
            problem, remedy = "has an invalid name", "Use letters, digits, - and _"
        elif unknown := sorted(set(table) - {"value", "hosts"}):
            problem = f"has the unknown option {unknown[0]!r}"
        elif not isinstance(table.get("value"), str) or not table["value"]:
            problem = "has no value"
        if problem:
            raise Misconfigured(f"{place} in {origin} {problem}", remedy=remedy, field=place)
        value = self._references.resolve(table["value"], f"{place}.value", origin, secret=True)
        try:
            return Credential(value, parsers.hosts(table.get("hosts", [])))
        except parsers.InvalidSetting as error:
            raise Misconfigured(f"{place}.hosts in {origin} {error}", remedy=remedy, field=place) from None

    def _import(self, name: str, raw: object, origin: str) -> ImportSettings:
        """Parse one import of another system's table."""
        place = f"imports.{name}"
        if not _NAME.fullmatch(name):
            problem = f"invalid import name {name!r} in {origin}"
            raise Misconfigured(problem, remedy="Use up to 63 letters, digits, - and _", field=place)
        table = _table(raw, place, origin)
        return read_import(name, self._references.resolve(table, place, origin, secret=False))

    def _inbound_table(self) -> dict[str, Any]:
        """Return the table [inbound] with references resolved and values of the environment applied."""
        table: dict[str, Any] = {}
        for path, raw, origin in self._inbound:
            inner = table
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
                if not isinstance(inner, dict):
                    raise Misconfigured(f"inbound.{name} is not a table, but {origin} is set", field=name)
            key = ".".join(("inbound", *path))
            may_be_missing = self._may_be_missing and path[0] == "sources"
            inner[path[-1]] = self._references.resolve(
                raw, key, origin, secret=is_secret(path[-1]), may_be_missing=may_be_missing
            )
        return table


def _find(config: str | Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """Return the configuration file: a named one must exist, the default one need not."""
    named = config or environ.get("TIDINGS_CONFIG")
    path = folder / (named or DEFAULT_FILE)
    if path.is_file():
        return path
    if named:
        where = "--config" if config else "TIDINGS_CONFIG"
        raise Misconfigured(
            f"{where} names {str(path)!r}, which is not a file", remedy="Check the path", field="config"
        )
    return None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}", remedy="Correct this line") from None
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
        raise Misconfigured(problem, remedy="Check its permissions") from None


def _table(raw: object, name: str, origin: str) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        remedy = f"Write [{name if '.' in name else name + '.NAME'}] and the options below it"
        raise Misconfigured(f"{name} in {origin} is not a table", remedy=remedy, field=name)
    return raw


def _policy(name: str, options: object, origin: str) -> retry.RetryPolicy:
    if name in retry.POLICIES:
        problem = f"policies.{name} in {origin} has the name of a built-in policy"
        raise Misconfigured(problem, remedy="Choose another name", field=f"policies.{name}")
    try:
        return retry.parse_policy(name, _table(options, f"policies.{name}", origin))
    except Misconfigured as error:
        raise Misconfigured(f"{error.problem} (in {origin})", remedy=error.remedy, field=error.field) from None


_UNITS: Mapping[ThresholdUnit, Callable[[Any], Any]] = {
    ThresholdUnit.LENGTH: parsers.duration,
    ThresholdUnit.COUNT: parsers.integer(1, 10**9),
    ThresholdUnit.SHARE: parsers.fraction,
    ThresholdUnit.SIZE: parsers.size,
}


def _thresholds(added: Mapping[str, tuple[object, str]]) -> AlertThresholds:
    """Parse the table [alerts]."""
    known = {item.name: _UNITS[item.metadata["unit"]] for item in fields(AlertThresholds)}
    given = {}
    for name, (raw, origin) in added.items():
        if name not in known:
            problem = f"unknown setting 'alerts.{name}' in {origin}"
            raise Misconfigured(problem, remedy=hint(name, known), field=f"alerts.{name}")
        try:
            given[name] = known[name](raw)
        except parsers.InvalidSetting as error:
            problem = f"alerts.{name} in {origin} {error}"
            raise Misconfigured(problem, remedy=error.remedy, field=f"alerts.{name}") from None
    return AlertThresholds(**given)


def _inbound(table: dict[str, Any], folder: Path) -> InboundSettings:
    """Parse the table [inbound], each part with its own parser."""
    from ..inbound.calendar import settings as calendar
    from ..inbound.llm import settings as model
    from ..inbound.sources.settings import read_production, read_sources
    from ..inbound.workflow import settings as workflow

    production = read_production(table.get("production", True))
    readers: Mapping[str, Callable[[Any], Any]] = {
        "model": lambda part: model.read(part, folder),
        "calendar": calendar.read,
        "sources": lambda part: read_sources(part, production=production),
        "production": lambda _: production,
    }
    known = (*readers, *workflow.OPTIONS)
    if unknown := sorted(set(table) - set(known)):
        field = f"inbound.{unknown[0]}"
        raise Misconfigured(f"unknown setting {field!r}", remedy=hint(unknown[0], known), field=field)
    parts = {name: read(table[name]) for name, read in readers.items() if name in table}
    own = {name: value for name, value in table.items() if name in workflow.OPTIONS}
    return InboundSettings(**parts, workflow=workflow.read(own) if own else None)


def _check_policies(settings: Settings) -> None:
    """Raise Misconfigured if a channel names an unknown retry policy."""
    known = settings.all_policies
    for name, channel in settings.channels.items():
        wanted = channel.options.get("policy")
        if wanted is not None and wanted not in known:
            problem = f"channels.{name} names the unknown retry policy {wanted!r}"
            raise Misconfigured(problem, remedy=hint(str(wanted), known), field=f"channels.{name}.policy")
