"""Reading the configuration: whatever is not understood stops the start.

Three sources, the later one wins: a TOML file (./tidings.toml, or named by --config or TIDINGS_CONFIG), the
environment (TIDINGS_PORT, TIDINGS_CHANNELS__PHONE__URL), and the flags of a command. What nobody set keeps
its default and is not in `origins`. A secret is best given by reference, "env:NAME" or "file:/path".
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..kernel import retry
from ..migration.credentials import Credential
from ..model.errors import Misconfigured
from ..outbound.alerts.thresholds import AlertThresholds, ThresholdUnit
from ..outbound.tenant_quotas import read_tenant_limits
from . import parsers
from .secrets import Secret, has_password, is_secret, is_template
from .settings import DEFAULT_CHANNELS, SETTING_PARSERS, ChannelSettings, InboundSettings, Settings

DEFAULT_FILE = "tidings.toml"

PREFIX = "TIDINGS_"

NOT_SETTINGS = (
    "TIDINGS_CONFIG",
    "TIDINGS_DEBUG",
    "TIDINGS_LOCAL_MODEL_ONLY",
    "TIDINGS_TEST_",
    "TIDINGS_CRASH_",
)  # beginnings of variables that are read elsewhere

_LISTS = frozenset(
    {"api_keys", "encryption_keys", "trusted_proxies", "events_secrets", "alert_to", "broker_channels"}
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def load(
    config: str | Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Read all sources into Settings, or raise Misconfigured naming the key, where it stands and the remedy.

    `flags` are overrides by name of setting; None in it means that the flag was not given.
    """
    environ = os.environ if environ is None else environ
    path = _find(config, environ, folder or Path())
    reader = _SettingsLoader(environ, path, folder or Path())
    if path:
        reader.take_file(path)
    reader.take_environment()
    for name, value in (flags or {}).items():
        if value is not None:
            reader.take(name, value, f"--{name.replace('_', '-')}")
    return reader.settings()


class _SettingsLoader:
    """Gathers raw values, each with its origin, and turns them into Settings at the end."""

    def __init__(self, environ: Mapping[str, str], path: Path | None, folder: Path) -> None:
        self._environ = environ
        self._path = path
        self._folder = path.parent if path else folder  # what "file:" counts from
        self._in_clear: list[str] = []
        self._values: dict[str, tuple[object, str]] = {}
        self._channels: dict[str, dict[str, tuple[object, str]]] = {}
        self._policies: dict[str, tuple[object, str]] = {}
        self._tenants: dict[str, Mapping[str, Any]] = {}
        self._inbound: list[tuple[tuple[str, ...], object, str]] = []  # path, value, origin
        self._alerts: dict[str, tuple[object, str]] = {}
        self._credentials: dict[str, tuple[object, str]] = {}

    def take_file(self, path: Path) -> None:
        """Every key of the TOML file."""
        for name, raw in _read_toml(path).items():
            if name == "inbound":
                inbound = _table(raw, name, str(path)).items()
                self._inbound += [((key,), value, str(path)) for key, value in inbound]
            elif name == "alerts":
                self._alerts |= {
                    key: (value, str(path)) for key, value in _table(raw, name, str(path)).items()
                }
            elif name == "tenants":
                for key, options in _table(raw, name, str(path)).items():
                    self._tenants[key] = _table(options, f"tenants.{key}", str(path))
            elif name == "credentials":
                self._credentials |= {
                    key: (value, str(path)) for key, value in _table(raw, name, str(path)).items()
                }
            elif name in ("channels", "policies"):
                for key, options in _table(raw, name, str(path)).items():
                    if name == "policies":
                        self._policies[key] = (options, str(path))
                    else:
                        self._take_channel(key, _table(options, f"channels.{key}", str(path)), str(path))
            else:
                self.take(name, raw, str(path))

    def take_environment(self) -> None:
        """Every variable with our prefix; a misspelt one is refused like any other key."""
        for variable, raw in self._environ.items():
            if not variable.startswith(PREFIX) or variable.startswith(NOT_SETTINGS):
                continue
            first, *rest = variable.removeprefix(PREFIX).lower().split("__")
            if first == "channels" and len(rest) == 2 and all(rest):
                self._take_channel(self._channel_like(rest[0]), {rest[1]: raw}, variable)
            elif first == "inbound" and rest and all(rest):
                self._inbound.append((tuple(rest), raw, variable))
            elif first == "alerts" and len(rest) == 1:
                self._alerts[rest[0]] = (raw, variable)
            else:
                self.take("__".join((first, *rest)), raw, variable)

    def take(self, name: str, raw: object, origin: str) -> None:
        """One simple setting; the latest wins."""
        if name not in SETTING_PARSERS:
            known = (*SETTING_PARSERS, "channels", "policies", "tenants", "inbound", "alerts", "credentials")
            spelled = [PREFIX + key.upper() for key in known] if origin.startswith(PREFIX) else list(known)
            mine = origin if origin.startswith(PREFIX) else name
            close = difflib.get_close_matches(mine, spelled, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known settings: {', '.join(known)}"
            if name.partition("__")[0] in ("channels", "policies"):
                remedy = f"Write {PREFIX}CHANNELS__NAME__OPTION for channels; policies are set in the file"
            where = "the environment" if origin.startswith(PREFIX) else origin
            raise Misconfigured(f"unknown setting {mine!r} in {where}", remedy=remedy, field=name)
        self._values[name] = (raw, origin)

    def settings(self) -> Settings:
        """Parse everything that was taken."""
        given = {name: self._parse(name, *taken) for name, taken in self._values.items()}
        if self._channels:
            given["channels"] = {name: self._channel(name) for name in self._channels}
        given["policies"] = {name: _policy(name, *taken) for name, taken in self._policies.items()}
        if self._inbound:
            given["inbound"] = _inbound(self._inbound_table(), self._folder)
        given["alerts"] = _thresholds(self._alerts)
        given["credentials"] = {
            name: self._credential(name, *taken) for name, taken in self._credentials.items()
        }
        origins = {name: origin for name, (_, origin) in self._values.items()}
        origins |= {f"alerts.{name}": origin for name, (_, origin) in self._alerts.items()}
        channels = given.get("channels", DEFAULT_CHANNELS)
        given["tenants"] = {
            name: read_tenant_limits(name, its, channels) for name, its in self._tenants.items()
        }
        settings = Settings(**given, origins=origins)
        _check_policies(settings)
        self._refuse_open_file()
        return settings

    def _parse(self, name: str, raw: object, origin: str) -> Any:
        if name in _LISTS and isinstance(raw, str):
            raw = [key.strip() for key in raw.split(",") if key.strip()]
        try:
            return SETTING_PARSERS[name](self._resolve(raw, name, origin, secret=is_secret(name)))
        except parsers.InvalidSetting as error:
            raise Misconfigured(f"{name} in {origin} {error}", remedy=error.remedy, field=name) from None

    def _take_channel(self, name: str, options: Mapping[str, Any], origin: str) -> None:
        if not _NAME.fullmatch(name):
            remedy = "Use letters, digits, - and _, at most 63 of them"
            raise Misconfigured(f"the channel name {name!r} in {origin} cannot be used", remedy=remedy)
        self._channels.setdefault(name, {}).update({key: (raw, origin) for key, raw in options.items()})

    def _channel_like(self, name: str) -> str:
        """The configured channel that a variable means: variables know neither - nor small letters."""
        return next((own for own in self._channels if own.lower().replace("-", "_") == name), name)

    def _channel(self, name: str) -> ChannelSettings:
        taken = dict(self._channels[name])
        kind, _ = taken.pop("kind", (DEFAULT_CHANNELS.get(name), ""))
        if not isinstance(kind, str) or not kind:
            remedy = 'Add kind = "webhook", or another kind of channel'
            raise Misconfigured(f"channels.{name} has no kind", remedy=remedy, field=f"channels.{name}.kind")
        options = {
            key: self._resolve(raw, f"channels.{name}.{key}", origin, secret=is_secret(key))
            for key, (raw, origin) in taken.items()
        }
        return ChannelSettings(kind, MappingProxyType(options))

    def _credential(self, name: str, raw: object, origin: str) -> Credential:
        """One secret that migrations of the API may use; the file is the only place for it."""
        place = f"credentials.{name}"
        table = _table(raw, place, origin)
        problem, remedy = "", 'Write value = "env:NAME" and hosts = ["api.example.com"]'
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name):
            problem, remedy = "has a name that cannot be used", "Use letters, digits, - and _"
        elif unknown := sorted(set(table) - {"value", "hosts"}):
            problem = f"has the unknown option {unknown[0]!r}"
        elif not isinstance(table.get("value"), str) or not table["value"]:
            problem = "has no value"
        if problem:
            raise Misconfigured(f"{place} in {origin} {problem}", remedy=remedy, field=place)
        value = self._resolve(table["value"], f"{place}.value", origin, secret=True)
        try:
            return Credential(value, parsers.hosts(table.get("hosts", [])))
        except parsers.InvalidSetting as error:
            raise Misconfigured(f"{place}.hosts in {origin} {error}", remedy=remedy, field=place) from None

    def _inbound_table(self) -> dict[str, Any]:
        """The table [inbound] with its references replaced, and over it what the environment says."""
        table: dict[str, Any] = {}
        for path, raw, origin in self._inbound:
            inner = table
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
                if not isinstance(inner, dict):
                    raise Misconfigured(f"inbound.{name} is not a table, but {origin} is set", field=name)
            key = ".".join(("inbound", *path))
            inner[path[-1]] = self._resolve(raw, key, origin, secret=is_secret(path[-1]))
        return table

    def _resolve(self, raw: object, key: str, origin: str, *, secret: bool) -> Any:
        """The value with references replaced, and secrets in clear wrapped so that they are not shown."""
        if isinstance(raw, list):
            return [self._resolve(entry, key, origin, secret=secret) for entry in raw]
        if isinstance(raw, dict):
            return {
                name: self._resolve(entry, f"{key}.{name}", origin, secret=secret or is_secret(name))
                for name, entry in raw.items()
            }
        if not isinstance(raw, str) or not raw:
            return raw
        scheme, _, target = raw.partition(":")
        if scheme == "env" and target:
            return Secret(self._from_environment(target, key, origin), raw)
        if scheme == "file" and target:
            return Secret(self._from_file(target, key, origin), raw)
        secret = secret and not is_template(raw)
        if origin == str(self._path) and (secret or has_password(raw)):
            self._in_clear.append(key)
        return Secret(raw) if secret else raw

    def _refuse_open_file(self) -> None:
        """A file that everybody on the machine can read must not hold a secret in clear."""
        if self._in_clear and self._path and self._path.stat().st_mode & stat.S_IROTH:
            problem = f"{self._path} can be read by everybody and holds {self._in_clear[0]} in clear"
            remedy = f"Run: chmod 600 {self._path}, or give the secret as env:NAME or file:/path"
            raise Misconfigured(problem, remedy=remedy, field=self._in_clear[0])

    def _from_environment(self, variable: str, key: str, origin: str) -> str:
        if not self._environ.get(variable):
            problem = f"{key} in {origin} refers to the variable {variable}, which is not set"
            raise Misconfigured(problem, remedy=f"Set {variable} and start again", field=key)
        return self._environ[variable]

    def _from_file(self, target: str, key: str, origin: str) -> str:
        path = self._folder / target
        try:
            value = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not a text"
            problem = f"{key} in {origin} refers to the file {path}, which cannot be read ({why})"
            raise Misconfigured(problem, remedy="Check the path and its permissions", field=key) from None
        if not value:
            problem = f"{key} in {origin} refers to the file {path}, which is empty"
            raise Misconfigured(problem, remedy="Put the secret into it", field=key)
        return value


def _find(config: str | Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """The file to read: one that was named must be there, the usual one may be absent."""
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
        raise Misconfigured(f"{path} is not valid TOML: {error}", remedy="Correct that line") from None
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
        problem = f"policies.{name} in {origin} has the name of a ready-made policy"
        raise Misconfigured(problem, remedy="Choose another name", field=f"policies.{name}")
    try:
        return retry.parse_policy(name, _table(options, f"policies.{name}", origin))
    except Misconfigured as error:
        raise Misconfigured(
            f"{error.problem} (in {origin})", remedy=error.remedy, field=error.field
        ) from None


_UNITS: Mapping[ThresholdUnit, Callable[[Any], Any]] = {
    ThresholdUnit.LENGTH: parsers.duration,
    ThresholdUnit.COUNT: parsers.integer(1, 10**9),
    ThresholdUnit.SHARE: parsers.fraction,
    ThresholdUnit.SIZE: parsers.size,
}


def _thresholds(taken: Mapping[str, tuple[object, str]]) -> AlertThresholds:
    """The table [alerts]; what it does not name keeps its default."""
    known = {item.name: _UNITS[item.metadata["unit"]] for item in fields(AlertThresholds)}
    given = {}
    for name, (raw, origin) in taken.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(known)}"
            problem = f"unknown setting 'alerts.{name}' in {origin}"
            raise Misconfigured(problem, remedy=remedy, field=f"alerts.{name}")
        try:
            given[name] = known[name](raw)
        except parsers.InvalidSetting as error:
            problem = f"alerts.{name} in {origin} {error}"
            raise Misconfigured(problem, remedy=error.remedy, field=f"alerts.{name}") from None
    return AlertThresholds(**given)


def _inbound(table: dict[str, Any], folder: Path) -> InboundSettings:
    """Each part by its own reader; whatever is left over is refused."""
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
        close = difflib.get_close_matches(unknown[0], known, 1)
        remedy = f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(known)}"
        raise Misconfigured(
            f"unknown setting 'inbound.{unknown[0]}'", remedy=remedy, field=f"inbound.{unknown[0]}"
        )
    parts = {name: read(table[name]) for name, read in readers.items() if name in table}
    own = {name: value for name, value in table.items() if name in workflow.OPTIONS}
    return InboundSettings(**parts, workflow=workflow.read(own) if own else None)


def _check_policies(settings: Settings) -> None:
    """A channel that names a policy names one that exists."""
    known = settings.all_policies
    for name, channel in settings.channels.items():
        wanted = channel.options.get("policy")
        if wanted is not None and wanted not in known:
            close = difflib.get_close_matches(str(wanted), known, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known policies: {', '.join(known)}"
            problem = f"channels.{name} names the retry policy {wanted!r}, which does not exist"
            raise Misconfigured(problem, remedy=remedy, field=f"channels.{name}.policy")
