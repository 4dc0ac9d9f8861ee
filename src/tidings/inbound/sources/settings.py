"""The settings tables [inbound.sources.NAME]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from ...wire.ssrf_guard import api_url
from ...wire.webhook_signatures import parse_secret
from ..option_parsers import duration, flag, parse_table, refusal, whole

GROUPME, TELEGRAM, WHATSAPP_CLOUD, WAHA, WEBHOOK = "groupme", "telegram", "whatsapp_cloud", "waha", "webhook"
TWILIO = "twilio"
LARGEST_PAGE = 100
BASE_URLS: Mapping[str, str] = {GROUPME: "https://api.groupme.com/v3", TELEGRAM: "https://api.telegram.org"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One configured source."""

    name: str
    kind: str
    tenant: str = "default"
    token: str | None = field(default=None, repr=False)
    group: str | None = None
    poll_interval: timedelta = timedelta(seconds=10)
    page_size: int = 20
    base_url: str = ""
    deadline: timedelta = timedelta(seconds=15)
    expire_after: timedelta = timedelta(hours=24)
    channel: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    own_senders: tuple[str, ...] = ()
    allow_speaking_for: bool = False
    testers: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ("stop", "stopall", "unsubscribe", "optout")
    start_words: tuple[str, ...] = ("start", "unstop")
    help_words: tuple[str, ...] = ("help", "info")
    help_text: str = "Reply STOP to receive no more messages, START to receive them again."

    @property
    def is_polled(self) -> bool:
        """Whether the source is polled; otherwise the platform calls a webhook."""
        return self.token is not None and self.kind in BASE_URLS and self.channel is None

    def plainly(self) -> Mapping[str, Any]:
        """Return the values that differ from the defaults; secrets stay wrapped."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, usual) in values.items() if name != "name" and value != usual}


def _text(value: object) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise ValueError("must be a non-empty string")
    return value if isinstance(value, str) else str(value)  # a secret stays wrapped


def _texts(value: object) -> tuple[str, ...]:
    given = value.split(",") if type(value) is str else value
    return tuple(_text(one) for one in (given if isinstance(given, list | tuple) else [given]))


def _words(value: object) -> tuple[str, ...]:
    return tuple(word.strip().casefold() for word in _texts(value)) if value else ()


OPTIONS: Mapping[str, Callable[[Any], Any]] = {
    "tenant": _text,
    "token": _text,
    "group": _text,
    "poll_interval": duration,
    "page_size": whole(1, LARGEST_PAGE),
    "base_url": lambda value: api_url(_text(value)),
    "deadline": duration,
    "expire_after": duration,
    "channel": _text,
    "secrets": _texts,
    "own_senders": _texts,
    "allow_speaking_for": flag,
    "testers": _texts,
    "stop_words": _words,
    "start_words": _words,
    "help_words": _words,
    "help_text": _text,
}
"""The parser of each option, in the order of the reference."""

_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {  # at least one option of each group
    GROUPME: (("group",), ("token", "secrets")),
    TELEGRAM: (("token", "secrets", "channel"),),
    WHATSAPP_CLOUD: (("channel",),),
    WAHA: (("channel",),),
    TWILIO: (("channel",),),
    WEBHOOK: (("secrets",),),
}
KINDS = tuple(_NEEDED)


def read_production(value: object) -> bool:
    """Parse `inbound.production`, which disables impersonation."""
    try:
        return flag(value)
    except ValueError as error:
        raise refusal("inbound.production", "inbound.production is invalid", str(error)) from None


def read_sources(tables: object, *, production: bool) -> dict[str, SourceSettings]:
    """Parse all tables [inbound.sources.NAME]; raises Misconfigured."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        remedy = "Write [inbound.sources.NAME] and its options below it"
        raise refusal("inbound.sources", "inbound.sources is not a table of tables", remedy)
    return {name: read_source(name, table, production=production) for name, table in tables.items()}


def read_source(name: str, options: Mapping[str, Any], *, production: bool) -> SourceSettings:
    """Parse one table; raises Misconfigured with the option and the remedy."""
    where = f"inbound.sources.{name}"
    if not _NAME.fullmatch(name):
        raise refusal(where, f"invalid source name {name!r}", "Use letters, digits, - and _, at most 63 characters")
    kind = str(options.get("kind"))
    if kind not in _NEEDED:
        unknown = f"{where} has the unknown kind {options.get('kind')!r}"
        raise refusal(f"{where}.kind", unknown, f"Use one of: {', '.join(KINDS)}")
    values = parse_table(where, {key: raw for key, raw in options.items() if key != "kind"}, OPTIONS)
    settings = SourceSettings(name=name, kind=kind, **{"base_url": BASE_URLS.get(kind, ""), **values})
    _validate(where, settings, production=production)
    return settings


def _validate(where: str, settings: SourceSettings, *, production: bool) -> None:
    """Check options that depend on each other."""
    for group in _NEEDED[settings.kind]:
        if not any(getattr(settings, option) for option in group):
            missing = f"{where} is missing {' or '.join(group)}"
            raise refusal(f"{where}.{group[0]}", missing, f"A source of kind {settings.kind} needs it")
    if settings.kind == WEBHOOK:
        for secret in settings.secrets:
            try:
                parse_secret(secret)
            except ValueError as error:
                remedy = 'Make one with: echo "whsec_$(openssl rand -base64 32)"'
                raise refusal(f"{where}.secrets", f"{where}.secrets: {error}", remedy) from None
    elif any(len(secret) < 16 for secret in settings.secrets):
        short = f"{where}.secrets contains a secret of less than 16 characters"
        raise refusal(f"{where}.secrets", short, "Make one with: openssl rand -hex 32")
    if settings.allow_speaking_for and production:
        option, why = f"{where}.allow_speaking_for", "testers could impersonate anyone"
        remedy = "Remove it, or set production = false under [inbound] on a test system"
        raise refusal(option, f"{option} is not allowed in production: {why}", remedy)
