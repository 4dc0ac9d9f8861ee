"""Configuration: one frozen Settings; whatever is not understood stops the start.

Three sources, the later one wins: a TOML file (./tidings.toml, or named by --config or TIDINGS_CONFIG), the
environment (TIDINGS_PORT, TIDINGS_CHANNELS__PHONE__URL), and the flags of a command. What nobody set keeps
its default and is not in `origins`. A secret is best given by reference, "env:NAME" or "file:/path".
"""

# ruff: noqa: RUF009 - `_setting` is dataclasses.field with our metadata, not a value computed once
from __future__ import annotations

import difflib
import ipaddress
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from .kernel import retry
from .model import durations
from .model.errors import Misconfigured
from .outbound.alerts.settings import Thresholds, Unit
from .wire.signature import parse_secret

if TYPE_CHECKING:
    from .inbound.calendar.settings import CalendarSettings
    from .inbound.models.settings import ModelSettings
    from .inbound.sources.settings import SourceSettings
    from .inbound.workflow.settings import WorkflowSettings

DEFAULT_FILE = "tidings.toml"
PREFIX = "TIDINGS_"
NOT_SETTINGS = (
    "TIDINGS_CONFIG",
    "TIDINGS_DEBUG",
    "TIDINGS_FORBID_MODEL",
    "TIDINGS_TEST_",
    "TIDINGS_CRASH_",
)  # beginnings of variables that are read elsewhere
DEFAULT_CHANNELS = MappingProxyType({"phone": "sandbox", "console": "console"})
MASK = "***"

_SECRET_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passphrase"}
    | {"key", "keys", "authorization", "credential", "credentials"}
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "kib": 1024, "mib": 1024**2, "gib": 1024**3}


class Secret(str):
    """Text that must not be shown: its repr is where it came from, never what it is."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, value: str, shown: str = MASK) -> Secret:
        """`shown` is the reference it was resolved from, when there was one."""
        secret = super().__new__(cls, value)
        secret.shown = shown
        return secret

    def __repr__(self) -> str:
        return f"<secret {self.shown}>"


class _Bad(ValueError):
    """A value that cannot be used, with what to write instead."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.remedy = remedy


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise _Bad(f"is {raw!r}, which is not a text")
    return raw.strip()


def _choice(*choices: str) -> Callable[[object], str]:
    def parse(raw: object) -> str:
        if raw not in choices:
            raise _Bad(f"is {raw!r}", f"Use one of: {', '.join(choices)}")
        return str(raw)

    return parse


def _whole(least: int, most: int) -> Callable[[object], int]:
    def parse(raw: object) -> int:
        text = str(raw).strip()
        if (
            isinstance(raw, bool)
            or not re.fullmatch(r"-?[0-9]{1,15}", text)
            or not least <= int(text) <= most
        ):
            raise _Bad(f"is {raw!r}", f"Use a whole number from {least} to {most}")
        return int(text)

    return parse


def _flag(raw: object) -> bool:
    words = {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }
    if str(raw).lower() not in words or not isinstance(raw, bool | str):
        raise _Bad(f"is {raw!r}", "Use true or false")
    return words[str(raw).lower()]


def _length(raw: Any) -> timedelta:
    try:
        length = durations.parse(raw)
    except ValueError as error:
        raise _Bad(f"is {raw!r}", f"Use a duration such as 500ms, 30s, 5m, 12h or 7d: {error}") from None
    if not length:
        raise _Bad("is zero", "Use a duration longer than 0 s")
    return length


def _size(raw: object) -> int:
    found = re.fullmatch(r"([0-9]{1,12})\s*([a-z]*)", str(raw).strip().lower())
    if isinstance(raw, bool) or not found or found[2] not in _SIZES or not int(found[1]):
        raise _Bad(f"is {raw!r}", "Use a size such as 65536, 256KiB or 1MiB")
    return int(found[1]) * _SIZES[found[2]]


def _share(raw: object) -> float:
    text = str(raw).strip()
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*(%?)", text)
    share = float(found[1]) / (100 if found[2] else 1) if found and not isinstance(raw, bool) else 2
    if not 0 < share <= 1:
        raise _Bad(f"is {raw!r}", "Use a share such as 0.05 or 5%, over 0 and at most 1")
    return share


def _zone(raw: object) -> ZoneInfo:
    try:
        return ZoneInfo(_text(raw))
    except (KeyError, OSError, ValueError):
        raise _Bad(
            f"is {raw!r}, which is not a time zone", "Use a name such as UTC or Europe/Berlin"
        ) from None


def _database(raw: object) -> str:
    url = _text(raw)
    scheme, found, rest = url.partition("://")
    path = rest.removeprefix("/")
    if scheme == "sqlite" and rest.startswith("/") and path not in ("", "/", ":memory:") and "?" not in path:
        return url
    if scheme == "postgresql" and rest:
        return url
    remedy = "Use sqlite:///data/tidings.db for a file, or postgresql://user@host/name for a server"
    if not found:
        raise _Bad("is not a database URL", remedy)
    if scheme == "sqlite":
        problem = "keeps nothing after a stop" if ":memory:" in rest else "does not name a file by itself"
        raise _Bad(f"is {mask_url(url)!r}, which {problem}", f"{remedy}; an absolute path has four slashes")
    raise _Bad(f"is of the kind {scheme!r}, which Tidings does not speak", remedy)


def _public(raw: object) -> str:
    url = _text(raw).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise _Bad(
            f"is {mask_url(url)!r}", "Use the address that others reach, such as https://tidings.example.com"
        )
    if parts.username or parts.password:
        raise _Bad("has a user or a password in it", "Use the bare address")
    return url


def _keys(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(key, str) for key in raw):
        raise _Bad("is not a list of texts", 'Write api_keys = ["env:NAME"]')
    if any(len(key) < 16 for key in raw):
        raise _Bad("has a key of under 16 characters", "Make one with: openssl rand -hex 32")
    return tuple(raw)


def _signing(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(_is_signing(secret) for secret in raw):
        raise _Bad(
            "is not a list of signing secrets", 'Make one with: echo "whsec_$(openssl rand -base64 32)"'
        )
    return tuple(raw)


def _is_signing(secret: object) -> bool:
    try:
        return isinstance(secret, str) and bool(parse_secret(secret))
    except ValueError:
        return False


def _place(raw: object) -> tuple[str, int]:
    host, _, port = _text(raw).rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise _Bad(f"is {raw!r}", "Use a host and a port, such as 127.0.0.1:8125")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _addresses(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(one, str) and one.strip() for one in raw):
        raise _Bad("is not a list of addresses", 'Write alert_to = ["ada"]')
    return tuple(one.strip() for one in raw)


def _names(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(one, str) and one.strip() for one in raw):
        raise _Bad("is not a list of names", 'Write ["phone", "mail"]')
    return tuple(one.strip() for one in raw)


def _broker(raw: object) -> str:
    url = _text(raw)
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
        remedy = "Use the URL of a RabbitMQ, such as amqps://tidings:secret@rabbit.example.com/tidings"
        raise _Bad(f"is {mask_url(url)!r}", remedy)
    return url


def _replica(raw: object) -> str:
    url = _database(raw)
    if not url.startswith("postgresql://"):
        raise _Bad("is not a PostgreSQL", "Use postgresql://user@host/name of a standby, or leave it out")
    return url


def _setting(default: object, parse: Callable[[Any], Any], about: str) -> Any:
    """One setting: its default, written as a user would, how it is read, and what it is for."""
    value = parse(default) if default is not None else None
    return field(default=value, metadata={"parse": parse, "about": about})


@dataclass(frozen=True, slots=True, repr=False)
class ChannelSettings:
    """One configured way out. Values from the environment are always text."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def describe(self) -> Mapping[str, Any]:
        """Kind and options, safe to print."""
        return {"kind": self.kind, **_show(self.options)}

    def __repr__(self) -> str:
        return f"ChannelSettings({self.describe()!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InboundSettings:
    """What comes in, part by part; each is read and described by the package that it belongs to."""

    model: ModelSettings | None = None
    calendar: CalendarSettings | None = None
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)
    production: bool = True  # on a test system, testers may speak for others
    workflow: WorkflowSettings | None = None  # the options of [inbound] itself

    def describe(self) -> Mapping[str, Any]:
        """The parts that are set, safe to print."""
        sources = {name: _show(source.plainly()) for name, source in self.sources.items()}
        return {
            **({} if self.workflow is None else _show(self.workflow.plainly())),
            **({} if self.model is None else {"model": self.model.describe()}),
            **({} if self.calendar is None else {"calendar": self.calendar.describe()}),
            **({"sources": sources, "production": self.production} if sources else {}),
        }

    def __repr__(self) -> str:
        return f"InboundSettings({self.describe()!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """Everything that can be set. Secrets inside are `Secret`; print `describe()`, not the fields."""

    database: str = _setting("sqlite:///data/tidings.db", _database, "where everything is kept")
    host: str = _setting("127.0.0.1", _text, "address to listen on")
    port: int = _setting(8020, _whole(0, 65_535), "port to listen on; 0 takes a free one")
    public_url: str | None = _setting(
        None, _public, "where others reach this server: providers call back there"
    )
    api_keys: tuple[str, ...] = _setting((), _keys, "keys that callers must show; may be empty on loopback")
    zone: ZoneInfo = _setting("UTC", _zone, "time zone in which words such as 'tomorrow 9am' are read")
    slots: int = _setting(100, _whole(1, 10_000), "tasks in hand at once, per process")
    slots_per_channel: int = _setting(
        None, _whole(1, 10_000), "the same per channel; unset: as many as slots"
    )
    poll: timedelta = _setting("1s", _length, "longest sleep between two looks for work")
    lease: timedelta = _setting("10s", _length, "silence after which a node counts as dead")
    beat: timedelta = _setting("2s", _length, "time between two heartbeats")
    grace: timedelta = _setting("24h", _length, "how late a message may still go out after an outage")
    poison_after: int = _setting(4, _whole(1, 100), "deaths of its node after which a task is set aside")
    breaker_failures: int = _setting(5, _whole(1, 1000), "failures in a row that stop a channel for a while")
    breaker_pause: timedelta = _setting("60s", _length, "how long, until one message tries it again")
    keep_history: timedelta = _setting("30d", _length, "how long the history of moves is kept")
    keep_done: timedelta = _setting("90d", _length, "how long finished messages are kept")
    keep_audit: timedelta = _setting("365d", _length, "how long the audit trail is kept")
    keep_migrations: timedelta = _setting(
        "90d", _length, "how long records and logs of ended migrations are kept"
    )
    max_body: int = _setting("256KiB", _size, "largest message")
    max_bulk: int = _setting(1_000_000, _whole(1, 100_000_000), "most lines in one bulk call")
    log_format: str = _setting("auto", _choice("auto", "json", "text"), "auto: text on a terminal, else json")
    log_level: str = _setting("info", _choice("debug", "info", "warning", "error"), "least level to log")
    sandbox: bool = _setting(True, _flag, "run the pretend phone when a channel points at it")
    sandbox_port: int = _setting(8025, _whole(0, 65_535), "port of the pretend phone")
    events_private: bool = _setting(
        False, _flag, "let events go to private addresses and over http, for development"
    )
    events_secrets: tuple[str, ...] = _setting(
        (), _signing, "sign events to a URL that is no subscription, such as a broadcast's webhook"
    )
    alert_channel: str | None = _setting(None, _text, "the channel on which people are told of alerts")
    alert_to: tuple[str, ...] = _setting((), _addresses, "who is told of alerts there")
    statsd: tuple[str, int] | None = _setting(
        None, _place, "where counters and times go over UDP, such as 127.0.0.1:8125"
    )
    otel: bool = _setting(False, _flag, "send them with OpenTelemetry, too (extra `otel`)")
    memory_limit: int | None = _setting(
        None, _size, "memory that one process may use, for its alert; unset: what the system allows"
    )
    broker: str | None = _setting(
        None, _broker, "the RabbitMQ between dispatchers and transports; unset: nodes send by themselves"
    )
    broker_channels: tuple[str, ...] = _setting(
        (), _names, "the channels that go through it; empty: all of them"
    )
    broker_wait: timedelta = _setting(
        "10s", _length, "how long a message waits in RabbitMQ for a transport before it is taken back"
    )
    replica: str | None = _setting(
        None, _replica, "a PostgreSQL standby for lists, pages and exports; claims never go there"
    )
    recycle_after: int | None = _setting(
        None, _whole(1, 10**12), "messages after which a process ends in order, to be started afresh"
    )
    recycle_memory: int | None = _setting(None, _size, "memory in use after which it does")
    channels: Mapping[str, ChannelSettings] = field(
        default_factory=lambda: {name: ChannelSettings(kind) for name, kind in DEFAULT_CHANNELS.items()}
    )
    policies: Mapping[str, retry.Policy] = field(default_factory=dict)
    inbound: InboundSettings = field(default_factory=InboundSettings)
    alerts: Thresholds = field(default_factory=Thresholds)
    origins: Mapping[str, str] = field(default_factory=dict)  # what was set, and where

    def __post_init__(self) -> None:
        if self.slots_per_channel is None:
            object.__setattr__(self, "slots_per_channel", self.slots)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server, as far as its address says."""
        return _is_loopback(self.host)

    @property
    def database_path(self) -> Path | None:
        """The SQLite file; None for a server."""
        is_file = self.database.startswith("sqlite:///")
        return Path(self.database.removeprefix("sqlite:///")) if is_file else None

    @property
    def dispatched(self) -> frozenset[str]:
        """The channels whose messages are sent by transports."""
        if self.broker is None:
            return frozenset()
        return frozenset(self.broker_channels or self.channels)

    @property
    def all_policies(self) -> Mapping[str, retry.Policy]:
        """The ready-made retry policies and the user's own."""
        return {**retry.POLICIES, **self.policies}

    def check(self) -> None:
        """Refuse settings that contradict each other."""
        if self.lease < 2 * self.beat:
            lease, beat = durations.spell(self.lease), durations.spell(self.beat)
            raise Misconfigured(
                f"lease ({lease}) is under two beats ({beat} each)",
                remedy="Make the lease longer or the beat shorter, or healthy nodes will be taken for dead",
                field="lease",
            )
        if bool(self.alert_channel) != bool(self.alert_to) or (
            self.alert_channel and self.alert_channel not in self.channels
        ):
            known = ", ".join(sorted(self.channels))
            raise Misconfigured(
                f"alert_channel is {self.alert_channel!r} and alert_to {list(self.alert_to)!r}",
                remedy=f"Set both or neither; the channel is one of: {known}",
                field="alert_channel",
            )
        if unknown := sorted(set(self.broker_channels) - set(self.channels)):
            raise Misconfigured(
                f"broker_channels names {unknown[0]!r}, which is no channel",
                remedy=f"Use some of: {', '.join(sorted(self.channels))}",
                field="broker_channels",
            )
        if self.replica and self.database_path is not None:
            raise Misconfigured(
                "replica is set, but the database is a SQLite file",
                remedy="Leave replica out, or point database at the PostgreSQL that it follows",
                field="replica",
            )
        if self.sandbox and self.port and self.port == self.sandbox_port:
            raise Misconfigured(
                f"port and sandbox_port are both {self.port}",
                remedy="Change one of them",
                field="sandbox_port",
            )

    def refuse_open_door(self, *, has_admin: bool) -> None:
        """Refuse to listen where others can reach us, unless callers have to show a key.

        `has_admin`: whether the database has a key of an admin; it does as well as one of the settings.
        """
        if not (self.api_keys or has_admin or self.is_local):
            raise Misconfigured(
                f"host is {self.host!r}, which others can reach, but there is no key of an admin",
                remedy='Run: tidings keys create NAME --role admin, or set api_keys = ["env:NAME"], '
                "or listen on 127.0.0.1",
                field="host",
            )

    def describe(self) -> Mapping[str, Any]:
        """Every setting in plain values, safe to print: secrets and passwords in URLs are masked."""
        plain = {name: _show(getattr(self, name), name) for name in _SIMPLE}
        channels = {name: channel.describe() for name, channel in self.channels.items()}
        policies = {name: retry.explain(policy) for name, policy in self.policies.items()}
        inbound = self.inbound.describe()
        alerts = {item.name: _plain_threshold(self.alerts, item) for item in fields(self.alerts)}
        return {
            **plain, "channels": channels, "policies": policies, "inbound": inbound, "alerts": alerts
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Settings({self.describe()!r})"


_SIMPLE: Mapping[str, Callable[[Any], Any]] = {
    item.name: item.metadata["parse"] for item in fields(Settings) if "parse" in item.metadata
}


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
    reader = _Reader(environ, path, folder or Path())
    if path:
        reader.take_file(path)
    reader.take_environment()
    for name, value in (flags or {}).items():
        if value is not None:
            reader.take(name, value, f"--{name.replace('_', '-')}")
    return reader.settings()


class _Reader:
    """Gathers raw values, each with its origin, and turns them into Settings at the end."""

    def __init__(self, environ: Mapping[str, str], path: Path | None, folder: Path) -> None:
        self._environ = environ
        self._path = path
        self._folder = path.parent if path else folder  # what "file:" counts from
        self._in_clear: list[str] = []
        self._values: dict[str, tuple[object, str]] = {}
        self._channels: dict[str, dict[str, tuple[object, str]]] = {}
        self._policies: dict[str, tuple[object, str]] = {}
        self._inbound: list[tuple[tuple[str, ...], object, str]] = []  # path, value, origin
        self._alerts: dict[str, tuple[object, str]] = {}

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
        if name not in _SIMPLE:
            known = (*_SIMPLE, "channels", "policies", "inbound", "alerts")
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
        values = {name: self._parse(name, *taken) for name, taken in self._values.items()}
        if self._channels:
            values["channels"] = {name: self._channel(name) for name in self._channels}
        values["policies"] = {name: _policy(name, *taken) for name, taken in self._policies.items()}
        if self._inbound:
            values["inbound"] = _inbound(self._inbound_table(), self._folder)
        values["alerts"] = _thresholds(self._alerts)
        origins = {name: origin for name, (_, origin) in self._values.items()}
        origins |= {f"alerts.{name}": origin for name, (_, origin) in self._alerts.items()}
        settings = Settings(**values, origins=origins)
        _check_policies(settings)
        self._refuse_open_file()
        return settings

    def _parse(self, name: str, raw: object, origin: str) -> Any:
        if name in ("api_keys", "events_secrets", "alert_to", "broker_channels") and isinstance(raw, str):
            raw = [key.strip() for key in raw.split(",") if key.strip()]
        try:
            return _SIMPLE[name](self._resolve(raw, name, origin, secret=_is_secret(name)))
        except _Bad as error:
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
            key: self._resolve(raw, f"channels.{name}.{key}", origin, secret=_is_secret(key))
            for key, (raw, origin) in taken.items()
        }
        return ChannelSettings(kind, MappingProxyType(options))

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
            inner[path[-1]] = self._resolve(raw, key, origin, secret=_is_secret(path[-1]))
        return table

    def _resolve(self, raw: object, key: str, origin: str, *, secret: bool) -> Any:
        """The value with references replaced, and secrets in clear wrapped so that they are not shown."""
        if isinstance(raw, list):
            return [self._resolve(entry, key, origin, secret=secret) for entry in raw]
        if isinstance(raw, dict):
            return {
                name: self._resolve(entry, f"{key}.{name}", origin, secret=secret or _is_secret(name))
                for name, entry in raw.items()
            }
        if not isinstance(raw, str) or not raw:
            return raw
        scheme, _, target = raw.partition(":")
        if scheme == "env" and target:
            return Secret(self._from_environment(target, key, origin), raw)
        if scheme == "file" and target:
            return Secret(self._from_file(target, key, origin), raw)
        secret = secret and not _is_template(raw)
        if origin == str(self._path) and (secret or _has_password(raw)):
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


def mask_url(url: str) -> str:
    """A URL without its password and its query, both of which may hold secrets; in doubt it hides more."""
    masked = re.sub(r"^([^:]+://[^:@/?#]*):.*@", rf"\1:{MASK}@", url, flags=re.DOTALL)
    return re.sub(r"[?#].*", f"?{MASK}", masked, flags=re.DOTALL)


def _has_password(text: str) -> bool:
    try:
        return "://" in text and bool(urlsplit(text).password)
    except ValueError:
        return True  # not a URL that can be read, but it tried to be one


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


def _policy(name: str, options: object, origin: str) -> retry.Policy:
    if name in retry.POLICIES:
        problem = f"policies.{name} in {origin} has the name of a ready-made policy"
        raise Misconfigured(problem, remedy="Choose another name", field=f"policies.{name}")
    try:
        return retry.parse(name, _table(options, f"policies.{name}", origin))
    except Misconfigured as error:
        raise Misconfigured(
            f"{error.problem} (in {origin})", remedy=error.remedy, field=error.field
        ) from None


_UNITS: Mapping[Unit, Callable[[Any], Any]] = {
    Unit.LENGTH: _length,
    Unit.COUNT: _whole(1, 10**9),
    Unit.SHARE: _share,
    Unit.SIZE: _size,
}


def _thresholds(taken: Mapping[str, tuple[object, str]]) -> Thresholds:
    """The table [alerts]; what it does not name keeps its default."""
    known = {item.name: _UNITS[item.metadata["unit"]] for item in fields(Thresholds)}
    values = {}
    for name, (raw, origin) in taken.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(known)}"
            problem = f"unknown setting 'alerts.{name}' in {origin}"
            raise Misconfigured(problem, remedy=remedy, field=f"alerts.{name}")
        try:
            values[name] = known[name](raw)
        except _Bad as error:
            problem = f"alerts.{name} in {origin} {error}"
            raise Misconfigured(problem, remedy=error.remedy, field=f"alerts.{name}") from None
    return Thresholds(**values)


def _plain_threshold(limits: Thresholds, item: Field[Any]) -> Any:
    """A threshold as it may be written."""
    value = getattr(limits, item.name)
    return (
        f"{value >> 20}MiB" if item.metadata["unit"] is Unit.SIZE and not value % (1 << 20) else _show(value)
    )


def _inbound(table: dict[str, Any], folder: Path) -> InboundSettings:
    """Each part by its own reader; whatever is left over is refused."""
    from .inbound.calendar import settings as calendar
    from .inbound.models import settings as model
    from .inbound.sources.settings import read_production, read_sources
    from .inbound.workflow import settings as workflow

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


def _is_secret(name: str) -> bool:
    # Whoever knows the id of a GroupMe bot can post as the bot.
    return name == "bot_id" or bool(_SECRET_WORDS & set(re.split(r"[_-]", name.lower())))


def _is_template(value: str) -> bool:
    """Whether a value is placeholders only, such as "Bearer {%secrets.key%}": there is no secret in it."""
    rest = re.sub(r"\{%[^%]*%\}", "", value)
    return rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _show(value: Any, key: str = "") -> Any:
    """A value as it may be printed."""
    if isinstance(value, Secret):
        return value.shown
    if isinstance(value, Mapping):
        return {name: _show(entry, name) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_show(entry, key) for entry in value]
    if isinstance(value, timedelta):
        return durations.spell(value)
    if isinstance(value, ZoneInfo):
        return value.key
    if isinstance(value, str) and value and _is_secret(key):
        return MASK
    return mask_url(value) if isinstance(value, str) and "://" in value else value
