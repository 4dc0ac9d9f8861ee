"""Settings: every setting with its default and description."""

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
from ..outbound.alerts.rules import AlertThresholds, ThresholdUnit
from ..outbound.imports.settings import ImportSettings
from ..outbound.tenant_quotas import TenantLimits
from ..wire.origin_checks import is_loopback
from . import parsers
from .secrets import find_missing, mask_secrets, mask_url

if TYPE_CHECKING:
    from ..inbound.calendar.settings import CalendarSettings
    from ..inbound.llm.settings import ModelSettings
    from ..inbound.sources.settings import SourceSettings
    from ..inbound.workflow.settings import WorkflowSettings
    from ..observability.log import LogOptions

DEFAULT_CHANNELS = MappingProxyType({"phone": "sandbox", "console": "console"})


def _setting(default: object, parse: Callable[[Any], Any], about: str) -> Any:
    """Define a setting: its default as a user would write it, its parser, and its description."""
    value = parse(default) if default is not None else None
    return field(default=value, metadata={"parse": parse, "about": about})


@dataclass(frozen=True, slots=True, repr=False)
class ChannelSettings:
    """One configured channel. Values from the environment are always strings."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def describe(self) -> Mapping[str, Any]:
        """Return kind and options with secrets masked."""
        return {"kind": self.kind, **mask_secrets(self.options)}

    @property
    def missing_secret(self) -> Misconfigured | None:
        """The error of a secret that is not set, if any."""
        return find_missing(self.options)

    def __repr__(self) -> str:
        return f"ChannelSettings({self.describe()!r})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InboundSettings:
    """Settings of inbound messages; each part is parsed and described by its own package."""

    model: ModelSettings | None = None
    calendar: CalendarSettings | None = None
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)
    production: bool = True  # False allows testers to speak for others
    workflow: WorkflowSettings | None = None  # the options of [inbound] itself

    def describe(self) -> Mapping[str, Any]:
        """Return the parts that are set, with secrets masked."""
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
    """All settings. Print `describe()`, which masks secrets, not the fields."""

    database: str = _setting("sqlite:///data/tidings.db", parsers.database, "database URL")
    host: str = _setting("127.0.0.1", parsers.text, "address to listen on")
    port: int = _setting(8020, parsers.integer(0, 65_535), "port to listen on; 0 for any free port")
    metrics_port: int | None = _setting(
        None, parsers.integer(0, 65_535), "port for /metrics and health checks without a key, in every role"
    )
    public_url: str | None = _setting(None, parsers.public, "public URL of this server, for callbacks")
    api_keys: tuple[str, ...] = _setting((), parsers.keys, "API keys with admin rights; may be empty on loopback")
    encryption_keys: tuple[str, ...] = _setting(
        (), parsers.encryption, "keys for secrets in the database: the first encrypts, all decrypt"
    )
    trusted_proxies: tuple[str, ...] = _setting((), parsers.networks, "proxies whose X-Forwarded-For is trusted")
    timezone: ZoneInfo = _setting("UTC", parsers.timezone, "time zone for times such as 'tomorrow 9am'")
    concurrency: int = _setting(100, parsers.integer(1, 10_000), "messages sent concurrently per process")
    channel_concurrency: int = _setting(None, parsers.integer(1, 10_000), "limit per channel; default: concurrency")
    poll_interval: timedelta = _setting("1s", parsers.duration, "longest time between polls for work")
    node_timeout: timedelta = _setting("10s", parsers.duration, "time without heartbeats until a node is dead")
    heartbeat_interval: timedelta = _setting("2s", parsers.duration, "time between heartbeats")
    expire_after: timedelta = _setting("24h", parsers.duration, "how late a message may still be sent")
    quarantine_after: int = _setting(4, parsers.integer(1, 100), "crashes after which a message is quarantined")
    breaker_threshold: int = _setting(5, parsers.integer(1, 1000), "consecutive failures that open a breaker")
    breaker_timeout: timedelta = _setting("60s", parsers.duration, "time until an open breaker allows a probe")
    history_retention: timedelta = _setting("30d", parsers.duration, "retention of state transitions")
    message_retention: timedelta = _setting("90d", parsers.duration, "retention of finished messages")
    idempotency_retention: timedelta = _setting("24h", parsers.duration, "retention of idempotency keys")
    dead_letter_retention: timedelta | None = _setting(None, parsers.duration, "age at which dead letters expire")
    audit_retention: timedelta = _setting("365d", parsers.duration, "retention of the audit log")
    migration_retention: timedelta = _setting("90d", parsers.duration, "retention of migration records")
    broadcast_batch_size: int = _setting(1000, parsers.integer(1, 5000), "recipients enqueued in one transaction")
    broadcast_batches: int = _setting(10, parsers.integer(1, 100), "batches of one broadcast in progress at once")
    health_min_success_rate: float = _setting(0.9, parsers.fraction, "success rate below which health is degraded")
    health_max_error_rate: float = _setting(0.1, parsers.fraction, "share of one error category that degrades health")
    health_max_queue_depth: int = _setting(
        10_000, parsers.integer(1, 10**9), "due messages above which the scheduler is unhealthy"
    )
    health_max_poll_age: timedelta = _setting("2m", parsers.duration, "time without polls that is unhealthy")
    max_body: int = _setting("256KiB", parsers.size, "maximum size of a message")
    max_bulk: int = _setting(1_000_000, parsers.integer(1, 100_000_000), "maximum lines of a bulk call")
    migration_queues: tuple[str, ...] = _setting(
        (), parsers.migration_queues, "tenants and priorities whose migrations have their own queue"
    )
    migration_folder: Path = _setting("data/migrations", parsers.folder, "folder for files of API migrations")
    migration_api_files: bool = _setting(False, parsers.flag, "allow API migrations to use files there")
    migration_api_private: bool = _setting(False, parsers.flag, "allow API migrations to call private addresses")
    max_header: int = _setting("64KiB", parsers.size, "maximum size of a request header")
    header_timeout: timedelta = _setting("10s", parsers.duration, "maximum time to receive a request header")
    max_connections: int = _setting(1000, parsers.integer(1, 100_000), "maximum open connections per process")
    log_format: str = _setting(
        "auto", parsers.choice("auto", "json", "text"), "auto: text on a terminal, otherwise json"
    )
    log_level: str = _setting("info", parsers.choice("debug", "info", "warning", "error"), "minimum log level")
    log_output: str = _setting("stderr", parsers.choice("stderr", "stdout"), "stream of the log")
    log_successes: bool | None = _setting(
        None, parsers.flag, "log each successful attempt; default: if the log is JSON"
    )
    sandbox: bool = _setting(True, parsers.flag, "run the simulated phone if a channel uses it")
    sandbox_port: int = _setting(8025, parsers.integer(0, 65_535), "port of the simulated phone")
    events_private: bool = _setting(
        False, parsers.flag, "allow events to private addresses and over http, for development"
    )
    events_secrets: tuple[str, ...] = _setting(
        (), parsers.signing, "signing secrets for events to URLs without a subscription, such as a broadcast's webhook"
    )
    alert_channel: str | None = _setting(None, parsers.text, "channel for alert messages")
    alert_to: tuple[str, ...] = _setting((), parsers.addresses, "recipients of alert messages")
    statsd: tuple[str, int] | None = _setting(None, parsers.host_and_port, "StatsD server, such as 127.0.0.1:8125")
    otel: bool = _setting(False, parsers.flag, "send metrics and traces with OpenTelemetry (extra `otel`)")
    memory_limit: int | None = _setting(None, parsers.size, "memory limit per process, for the alert")
    broker: tuple[str, ...] = _setting((), parsers.brokers, "RabbitMQ URLs, for dispatchers and transports")
    broker_allow_plaintext: bool = _setting(
        False, parsers.flag, "allow amqp:// without TLS to another machine, on a trusted network"
    )
    broker_channels: tuple[str, ...] = _setting((), parsers.names, "channels that use RabbitMQ; default: all")
    broker_management: str | None = _setting(
        None, parsers.management, "RabbitMQ's management API, for the metric of its memory"
    )
    broker_message_ttl: timedelta = _setting("10s", parsers.duration, "how long a message waits for a transport")
    replica: str | None = _setting(None, parsers.replica, "PostgreSQL standby for lists and exports; never for claims")
    compat: str | None = _setting(None, parsers.choice("connect"), "also serve the routes of another system: connect")
    max_messages_per_process: int | None = _setting(
        None, parsers.integer(1, 10**12), "messages after which a process restarts"
    )
    max_memory_per_process: int | None = _setting(None, parsers.size, "memory after which a process restarts")
    channels: Mapping[str, ChannelSettings] = field(
        default_factory=lambda: {name: ChannelSettings(kind) for name, kind in DEFAULT_CHANNELS.items()}
    )
    policies: Mapping[str, retry.RetryPolicy] = field(default_factory=dict)
    tenants: Mapping[str, TenantLimits] = field(default_factory=dict)
    inbound: InboundSettings = field(default_factory=InboundSettings)
    alerts: AlertThresholds = field(default_factory=AlertThresholds)
    credentials: Mapping[str, Credential] = field(default_factory=dict)
    imports: Mapping[str, ImportSettings] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)  # of settings that were set

    def __post_init__(self) -> None:
        if self.channel_concurrency is None:
            object.__setattr__(self, "channel_concurrency", self.concurrency)

    @property
    def is_local(self) -> bool:
        """Whether host and public_url are loopback addresses."""
        public = urlsplit(self.public_url or "http://localhost").hostname or ""
        return is_loopback(self.host) and is_loopback(public)

    @property
    def is_https(self) -> bool:
        """Whether clients use https."""
        return (self.public_url or "").startswith("https://")

    @property
    def database_path(self) -> Path | None:
        """The SQLite file; None for PostgreSQL."""
        is_file = self.database.startswith("sqlite:///")
        return Path(self.database.removeprefix("sqlite:///")) if is_file else None

    @property
    def log(self) -> LogOptions:
        """How the log is written."""
        from ..observability.log import LogOptions  # commands without a log do not import structlog

        return LogOptions(self.log_format, self.log_level, self.log_output, self.log_successes)

    @property
    def dispatched(self) -> frozenset[str]:
        """The channels whose messages go through RabbitMQ."""
        if not self.broker:
            return frozenset()
        return frozenset(self.broker_channels or self.channels)

    @property
    def all_policies(self) -> Mapping[str, retry.RetryPolicy]:
        """The built-in and the configured retry policies."""
        return {**retry.POLICIES, **self.policies}

    def check(self) -> None:
        """Raise Misconfigured for settings that contradict each other."""
        if self.node_timeout < 2 * self.heartbeat_interval:
            timeout, interval = (durations.humanize(one) for one in (self.node_timeout, self.heartbeat_interval))
            raise Misconfigured(
                f"node_timeout ({timeout}) is less than twice heartbeat_interval ({interval})",
                remedy="Raise node_timeout or lower heartbeat_interval, or live nodes are declared dead",
                field="node_timeout",
            )
        if bool(self.alert_channel) != bool(self.alert_to) or (
            self.alert_channel and self.alert_channel not in self.channels
        ):
            known = ", ".join(sorted(self.channels))
            raise Misconfigured(
                f"alert_channel is {self.alert_channel!r} and alert_to {list(self.alert_to)!r}",
                remedy=f"Set both or neither; alert_channel is one of: {known}",
                field="alert_channel",
            )
        if unknown := sorted(set(self.broker_channels) - set(self.channels)):
            raise Misconfigured(
                f"broker_channels names the unknown channel {unknown[0]!r}",
                remedy=f"Use some of: {', '.join(sorted(self.channels))}",
                field="broker_channels",
            )
        used = [("broker", url) for url in self.broker] + [("broker_management", self.broker_management or "")]
        for name, url in used:
            parts = urlsplit(url)
            if parts.scheme in ("amqp", "http") and not (
                is_loopback(parts.hostname or "") or self.broker_allow_plaintext
            ):
                raise Misconfigured(
                    f"{name} is {mask_url(url)!r}: messages and the password would be sent in clear text",
                    remedy=f"Use {parts.scheme}s://, or set broker_allow_plaintext = true on a trusted network",
                    field=name,
                )
        if self.replica and self.database_path is not None:
            raise Misconfigured(
                "replica is set, but the database is a SQLite file",
                remedy="Remove replica, or set database to the PostgreSQL primary",
                field="replica",
            )
        if self.sandbox and self.port and self.port == self.sandbox_port:
            raise Misconfigured(
                f"port and sandbox_port are both {self.port}", remedy="Change one of them", field="sandbox_port"
            )

    def require_key_unless_local(self, *, has_admin: bool) -> None:
        """Raise Misconfigured if the server is reachable from other machines without an admin key.

        `has_admin`: whether the database has an admin key.
        """
        if not (self.api_keys or has_admin or self.is_local):
            is_host = not is_loopback(self.host)
            name, value = ("host", self.host) if is_host else ("public_url", self.public_url)
            raise Misconfigured(
                f"{name} is {value!r}, which other machines can reach, but there is no admin key",
                remedy='Run: tidings keys create NAME --role admin, or set api_keys = ["env:NAME"], '
                + ("or listen on 127.0.0.1" if is_host else "or remove public_url"),
                field=name,
            )

    def describe(self) -> Mapping[str, Any]:
        """Return all settings as plain values, with secrets and passwords in URLs masked."""
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
        imports = {name: mask_secrets(one.describe()) for name, one in self.imports.items()}
        return {
            **plain, "channels": channels, "policies": policies, "tenants": tenants, "inbound": inbound,
            "alerts": alerts, "credentials": credentials, "imports": imports,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Settings({self.describe()!r})"


SETTING_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    item.name: item.metadata["parse"] for item in fields(Settings) if "parse" in item.metadata
}


def _plain_threshold(limits: AlertThresholds, item: Field[Any]) -> Any:
    """Return a threshold as a user would write it."""
    value = getattr(limits, item.name)
    return (
        f"{value >> 20}MiB"
        if item.metadata["unit"] is ThresholdUnit.SIZE and not value % (1 << 20)
        else mask_secrets(value)
    )
