"""Settings: everything that can be set, with its default and what it is for."""

# ruff: noqa: RUF009 - `_setting` is dataclasses.field with our metadata, not a value computed once
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ..kernel import retry
from ..migration.credentials import Credential
from ..model import durations
from ..model.errors import Misconfigured
from ..outbound.alerts.thresholds import AlertThresholds, ThresholdUnit
from ..outbound.tenant_quotas import TenantLimits
from ..wire.origin_checks import is_loopback
from . import parsers
from .secrets import mask_secrets, mask_url

if TYPE_CHECKING:
    from ..inbound.calendar.settings import CalendarSettings
    from ..inbound.llm.settings import ModelSettings
    from ..inbound.sources.settings import SourceSettings
    from ..inbound.workflow.settings import WorkflowSettings

DEFAULT_CHANNELS = MappingProxyType({"phone": "sandbox", "console": "console"})


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
        return {"kind": self.kind, **mask_secrets(self.options)}

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
        sources = {name: mask_secrets(source.plainly()) for name, source in self.sources.items()}
        return {
            **({} if self.workflow is None else mask_secrets(self.workflow.plainly())),
            **({} if self.model is None else {"model": self.model.describe()}),
            **({} if self.calendar is None else {"calendar": self.calendar.describe()}),
            **({"sources": sources, "production": self.production} if sources else {}),
        }

    def __repr__(self) -> str:
        return f"InboundSettings({self.describe()!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """Everything that can be set. Secrets inside are `Secret`; print `describe()`, not the fields."""

    database: str = _setting("sqlite:///data/tidings.db", parsers.database, "where everything is kept")
    host: str = _setting("127.0.0.1", parsers.text, "address to listen on")
    port: int = _setting(8020, parsers.integer(0, 65_535), "port to listen on; 0 takes a free one")
    public_url: str | None = _setting(
        None, parsers.public, "where others reach this server: providers call back there"
    )
    api_keys: tuple[str, ...] = _setting(
        (), parsers.keys, "keys that callers must show; may be empty on loopback"
    )
    encryption_keys: tuple[str, ...] = _setting(
        (), parsers.encryption, "encrypt secrets in the database: the first encrypts, all decrypt"
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (), parsers.networks, "reverse proxies whose X-Forwarded-For is believed"
    )
    timezone: ZoneInfo = _setting(
        "UTC", parsers.timezone, "time zone in which words such as 'tomorrow 9am' are read"
    )
    concurrency: int = _setting(100, parsers.integer(1, 10_000), "tasks in hand at once, per process")
    channel_concurrency: int = _setting(
        None, parsers.integer(1, 10_000), "the same per channel; unset: the same as concurrency"
    )
    poll_interval: timedelta = _setting("1s", parsers.duration, "longest sleep between two looks for work")
    node_timeout: timedelta = _setting("10s", parsers.duration, "silence after which a node counts as dead")
    heartbeat_interval: timedelta = _setting("2s", parsers.duration, "time between two heartbeats")
    expire_after: timedelta = _setting(
        "24h", parsers.duration, "how late a message may still go out after an outage"
    )
    quarantine_after: int = _setting(
        4, parsers.integer(1, 100), "deaths of its node after which a task is set aside"
    )
    breaker_threshold: int = _setting(
        5, parsers.integer(1, 1000), "failures in a row that stop a channel for a while"
    )
    breaker_timeout: timedelta = _setting(
        "60s", parsers.duration, "how long, until one message tries it again"
    )
    history_retention: timedelta = _setting(
        "30d", parsers.duration, "how long the history of moves, and of processes that left, is kept"
    )
    message_retention: timedelta = _setting("90d", parsers.duration, "how long finished messages are kept")
    audit_retention: timedelta = _setting("365d", parsers.duration, "how long the audit trail is kept")
    migration_retention: timedelta = _setting(
        "90d", parsers.duration, "how long records and logs of ended migrations are kept"
    )
    max_body: int = _setting("256KiB", parsers.size, "largest message")
    max_bulk: int = _setting(1_000_000, parsers.integer(1, 100_000_000), "most lines in one bulk call")
    migration_folder: Path = _setting(
        "data/migrations",
        parsers.folder,
        "files of migrations that come through the API, a folder per tenant",
    )
    migration_api_files: bool = _setting(
        False, parsers.flag, "let migrations that come through the API read and write files there"
    )
    migration_api_private: bool = _setting(
        False, parsers.flag, "let migrations that come through the API call private addresses and http URLs"
    )
    max_header: int = _setting("64KiB", parsers.size, "largest header of a request to the API")
    header_timeout: timedelta = _setting("10s", parsers.duration, "longest time for the header to arrive")
    max_connections: int = _setting(
        1000, parsers.integer(1, 100_000), "most open connections to the API, per process"
    )
    log_format: str = _setting(
        "auto", parsers.choice("auto", "json", "text"), "auto: text on a terminal, else json"
    )
    log_level: str = _setting(
        "info", parsers.choice("debug", "info", "warning", "error"), "least level to log"
    )
    sandbox: bool = _setting(True, parsers.flag, "run the pretend phone when a channel points at it")
    sandbox_port: int = _setting(8025, parsers.integer(0, 65_535), "port of the pretend phone")
    events_private: bool = _setting(
        False, parsers.flag, "let events go to private addresses and over http, for development"
    )
    events_secrets: tuple[str, ...] = _setting(
        (), parsers.signing, "sign events to a URL that is no subscription, such as a broadcast's webhook"
    )
    alert_channel: str | None = _setting(None, parsers.text, "the channel on which people are told of alerts")
    alert_to: tuple[str, ...] = _setting((), parsers.addresses, "who is told of alerts there")
    statsd: tuple[str, int] | None = _setting(
        None, parsers.host_and_port, "where counters and times go over UDP, such as 127.0.0.1:8125"
    )
    otel: bool = _setting(False, parsers.flag, "send them with OpenTelemetry, too (extra `otel`)")
    memory_limit: int | None = _setting(
        None, parsers.size, "memory that one process may use, for its alert; unset: what the system allows"
    )
    broker: tuple[str, ...] = _setting(
        (),
        parsers.brokers,
        "the RabbitMQ between dispatchers and transports, or the nodes of its cluster; unset: none is used",
    )
    broker_allow_plaintext: bool = _setting(
        False, parsers.flag, "let amqp:// without TLS go to another machine, on a network of your own"
    )
    broker_channels: tuple[str, ...] = _setting(
        (), parsers.names, "the channels that go through it; empty: all of them"
    )
    broker_message_ttl: timedelta = _setting(
        "10s",
        parsers.duration,
        "how long a message waits in RabbitMQ for a transport before it is taken back",
    )
    replica: str | None = _setting(
        None, parsers.replica, "a PostgreSQL standby for lists, pages and exports; claims never go there"
    )
    max_messages_per_process: int | None = _setting(
        None, parsers.integer(1, 10**12), "messages after which a process ends in order, to be started afresh"
    )
    max_memory_per_process: int | None = _setting(None, parsers.size, "memory in use after which it does")
    channels: Mapping[str, ChannelSettings] = field(
        default_factory=lambda: {name: ChannelSettings(kind) for name, kind in DEFAULT_CHANNELS.items()}
    )
    policies: Mapping[str, retry.RetryPolicy] = field(default_factory=dict)
    tenants: Mapping[str, TenantLimits] = field(default_factory=dict)
    inbound: InboundSettings = field(default_factory=InboundSettings)
    alerts: AlertThresholds = field(default_factory=AlertThresholds)
    credentials: Mapping[str, Credential] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)  # what was set, and where

    def __post_init__(self) -> None:
        if self.channel_concurrency is None:
            object.__setattr__(self, "channel_concurrency", self.concurrency)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server, as far as its addresses say."""
        public = urlsplit(self.public_url or "http://localhost").hostname or ""
        return is_loopback(self.host) and is_loopback(public)

    @property
    def is_https(self) -> bool:
        """Whether others reach the server over https."""
        return (self.public_url or "").startswith("https://")

    @property
    def database_path(self) -> Path | None:
        """The SQLite file; None for a server."""
        is_file = self.database.startswith("sqlite:///")
        return Path(self.database.removeprefix("sqlite:///")) if is_file else None

    @property
    def dispatched(self) -> frozenset[str]:
        """The channels whose messages are sent by transports."""
        if not self.broker:
            return frozenset()
        return frozenset(self.broker_channels or self.channels)

    @property
    def all_policies(self) -> Mapping[str, retry.RetryPolicy]:
        """The ready-made retry policies and the user's own."""
        return {**retry.POLICIES, **self.policies}

    def check(self) -> None:
        """Refuse settings that contradict each other."""
        if self.node_timeout < 2 * self.heartbeat_interval:
            timeout, interval = (
                durations.humanize(self.node_timeout),
                durations.humanize(self.heartbeat_interval),
            )
            raise Misconfigured(
                f"node_timeout ({timeout}) is under two heartbeat intervals ({interval} each)",
                remedy="Raise node_timeout or lower heartbeat_interval: healthy nodes would be declared dead",
                field="node_timeout",
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
        parts = [(url, urlsplit(url)) for url in self.broker]
        plain = [url for url, its in parts if its.scheme == "amqp" and not is_loopback(its.hostname or "")]
        if plain and not self.broker_allow_plaintext:
            raise Misconfigured(
                f"broker is {mask_url(plain[0])!r}: messages and the password would travel in clear",
                remedy="Use amqps://, or set broker_allow_plaintext = true on a network of your own",
                field="broker",
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

    def require_key_unless_local(self, *, has_admin: bool) -> None:
        """Refuse to listen where others can reach us, unless callers have to show a key.

        `has_admin`: whether the database has a key of an admin; it does as well as one of the settings.
        """
        if not (self.api_keys or has_admin or self.is_local):
            is_host = not is_loopback(self.host)
            name, value = ("host", self.host) if is_host else ("public_url", self.public_url)
            raise Misconfigured(
                f"{name} is {value!r}, which others can reach, but there is no key of an admin",
                remedy='Run: tidings keys create NAME --role admin, or set api_keys = ["env:NAME"], '
                + ("or listen on 127.0.0.1" if is_host else "or leave public_url out"),
                field=name,
            )

    def describe(self) -> Mapping[str, Any]:
        """Every setting in plain values, safe to print: secrets and passwords in URLs are masked."""
        plain = {name: mask_secrets(getattr(self, name), name) for name in SETTING_PARSERS}
        channels = {name: channel.describe() for name, channel in self.channels.items()}
        policies = {name: retry.describe_policy(policy) for name, policy in self.policies.items()}
        tenants = {name: limits.describe() for name, limits in self.tenants.items()}
        inbound = self.inbound.describe()
        alerts = {item.name: _plain_threshold(self.alerts, item) for item in fields(self.alerts)}
        credentials = {
            name: {"value": mask_secrets(one.value, "secret"), "hosts": sorted(one.hosts)}
            for name, one in self.credentials.items()
        }
        return {
            **plain, "channels": channels, "policies": policies, "tenants": tenants, "inbound": inbound,
            "alerts": alerts, "credentials": credentials,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Settings({self.describe()!r})"


SETTING_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    item.name: item.metadata["parse"] for item in fields(Settings) if "parse" in item.metadata
}


def _plain_threshold(limits: AlertThresholds, item: Field[Any]) -> Any:
    """A threshold as it may be written."""
    value = getattr(limits, item.name)
    return (
        f"{value >> 20}MiB"
        if item.metadata["unit"] is ThresholdUnit.SIZE and not value % (1 << 20)
        else mask_secrets(value)
    )
