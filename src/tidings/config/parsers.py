"""Parsers of single settings: return the value, or raise InvalidSetting with the remedy. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ..model import durations
from ..store.encryption import KEY_PATTERN
from ..wire.webhook_signatures import parse_secret
from .secrets import mask_url, split_urls

_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class InvalidSetting(ValueError):
    """An invalid value, with the remedy."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.remedy = remedy


def text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidSetting(f"is {raw!r}, which is not a string")
    return raw.strip()


def choice(*choices: str) -> Callable[[object], str]:
    def parse(raw: object) -> str:
        if raw not in choices:
            raise InvalidSetting(f"is {raw!r}", f"Use one of: {', '.join(choices)}")
        return str(raw)

    return parse


def integer(least: int, most: int) -> Callable[[object], int]:
    def parse(raw: object) -> int:
        text = str(raw).strip()
        if isinstance(raw, bool) or not re.fullmatch(r"-?[0-9]{1,15}", text) or not least <= int(text) <= most:
            raise InvalidSetting(f"is {raw!r}", f"Use a whole number from {least} to {most}")
        return int(text)

    return parse


def flag(raw: object) -> bool:
    word = str(raw).lower()
    if word not in _TRUE + _FALSE or not isinstance(raw, bool | str):
        raise InvalidSetting(f"is {raw!r}", "Use true or false")
    return word in _TRUE


def duration(raw: Any) -> timedelta:
    try:
        found = durations.parse(raw)
    except ValueError as error:
        raise InvalidSetting(f"is {raw!r}", f"Use a duration such as 500ms, 30s, 5m, 12h or 7d: {error}") from None
    if not found:
        raise InvalidSetting("must be greater than zero", "Use a duration such as 30s")
    return found


def size(raw: object) -> int:
    found = re.fullmatch(r"([0-9]{1,12})\s*([a-z]*)", str(raw).strip().lower())
    if isinstance(raw, bool) or not found or found[2] not in _SIZES or not int(found[1]):
        raise InvalidSetting(f"is {raw!r}", "Use a size such as 65536, 256KiB or 1MiB")
    return int(found[1]) * _SIZES[found[2]]


def fraction(raw: object) -> float:
    text = str(raw).strip()
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*(%?)", text)
    share = float(found[1]) / (100 if found[2] else 1) if found and not isinstance(raw, bool) else 2
    if not 0 < share <= 1:
        raise InvalidSetting(f"is {raw!r}", "Use a share such as 0.05 or 5%, greater than 0 and at most 1")
    return share


def timezone(raw: object) -> ZoneInfo:
    try:
        return ZoneInfo(text(raw))
    except (KeyError, OSError, ValueError):
        raise InvalidSetting(
            f"is {raw!r}, which is not a time zone", "Use a name such as UTC or Europe/Berlin"
        ) from None


def database(raw: object) -> str:
    url = text(raw)
    scheme, found, rest = url.partition("://")
    path = rest.removeprefix("/")
    if scheme == "sqlite" and rest.startswith("/") and path not in ("", "/", ":memory:") and "?" not in path:
        return url
    if scheme == "postgresql" and rest:
        return url
    remedy = "Use sqlite:///data/tidings.db for a file, or postgresql://user@host/name for a server"
    if not found:
        raise InvalidSetting("is not a database URL", remedy)
    if scheme == "sqlite":
        problem = "is not durable" if ":memory:" in rest else "does not name a file"
        raise InvalidSetting(f"is {mask_url(url)!r}, which {problem}", f"{remedy}; an absolute path has four slashes")
    raise InvalidSetting(f"has the unsupported scheme {scheme!r}", remedy)


def folder(raw: object) -> Path:
    return Path(text(raw))


def hosts(raw: object) -> frozenset[str]:
    """Parse hosts as they appear in URLs, with a port if it is not the default one."""
    found = names(raw)
    if bad := [one for one in found if not re.fullmatch(r"[A-Za-z0-9.:\[\]_-]+", one)]:
        raise InvalidSetting(f"has {bad[0]!r}, which is not a host", 'Write hosts = ["api.example.com"]')
    return frozenset(one.lower() for one in found)


def public(raw: object) -> str:
    url = text(raw).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidSetting(f"is {mask_url(url)!r}", "Use the public address, such as https://tidings.example.com")
    if parts.username or parts.password:
        raise InvalidSetting("contains a user or a password", "Remove it from the URL")
    return url


def _strings(raw: object, what: str, remedy: str, is_valid: Callable[[str], bool] = lambda _: True) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(one, str) and is_valid(one) for one in raw):
        raise InvalidSetting(f"is not a list of {what}", remedy)
    return tuple(raw)


def keys(raw: object) -> tuple[str, ...]:
    found = _strings(raw, "strings", 'Write api_keys = ["env:NAME"]')
    if any(len(key) < 16 for key in found):
        raise InvalidSetting("has a key shorter than 16 characters", "Create one with: openssl rand -hex 32")
    return found


def encryption(raw: object) -> tuple[str, ...]:
    remedy = "Create one with: openssl rand -hex 32"
    return _strings(raw, "keys of 64 hex digits", remedy, lambda key: bool(KEY_PATTERN.fullmatch(key)))


def signing(raw: object) -> tuple[str, ...]:
    remedy = 'Create one with: echo "whsec_$(openssl rand -base64 32)"'
    return _strings(raw, "signing secrets", remedy, _is_signing)


def _is_signing(secret: str) -> bool:
    try:
        return bool(parse_secret(secret))
    except ValueError:
        return False


def host_and_port(raw: object) -> tuple[str, int]:
    host, _, port = text(raw).rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise InvalidSetting(f"is {raw!r}", "Use a host and a port, such as 127.0.0.1:8125")
    return host.removeprefix("[").removesuffix("]"), int(port)


def addresses(raw: object) -> tuple[str, ...]:
    found = _strings(raw, "addresses", 'Write alert_to = ["ada"]', lambda one: bool(one.strip()))
    return tuple(one.strip() for one in found)


def networks(raw: object) -> tuple[str, ...]:
    remedy = 'Write trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]'
    return tuple(_network(one) for one in _strings(raw, "addresses", remedy))


def _network(text: str) -> str:
    remedy = "Use addresses or networks such as 127.0.0.1 or 10.0.0.0/8"
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise InvalidSetting(f"has {text[:60]!r}, which is not an address", remedy) from None
    if not network.prefixlen:
        raise InvalidSetting(f"has {text[:60]!r}, which is every address", remedy)
    return str(network)


def names(raw: object) -> tuple[str, ...]:
    found = _strings(raw, "names", 'Write ["phone", "mail"]', lambda one: bool(one.strip()))
    return tuple(one.strip() for one in found)


def migration_queues(raw: object) -> tuple[str, ...]:
    remedy = 'Write migration_queues = ["tenant=acme", "priority=1"]'
    pattern = re.compile(r"tenant=[A-Za-z0-9][A-Za-z0-9_-]{0,62}|priority=[0-9]")
    return _strings(raw, "tenants and priorities", remedy, lambda one: bool(pattern.fullmatch(one)))


def brokers(raw: object) -> tuple[str, ...]:
    """Parse one URL, several separated by commas, or a list of either."""
    given = raw if isinstance(raw, list | tuple) else [raw]
    return tuple(_broker(url) for one in given for url in split_urls(text(one)))


def _broker(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        is_usable = parts.scheme in ("amqp", "amqps") and re.fullmatch(r"[^\s,]+", parts.hostname or "")
    except ValueError:
        is_usable = None
    if not is_usable:
        remedy = "Use the URL of a RabbitMQ, such as amqps://tidings:secret@rabbit.example.com/tidings"
        raise InvalidSetting(f"is {mask_url(url)!r}", f"{remedy}; separate several URLs with commas")
    return url


def management(raw: object) -> str:
    """Parse the URL of RabbitMQ's management API; it may contain a user and a password."""
    url = text(raw).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InvalidSetting(
            f"is {mask_url(url)!r}", "Use a URL such as https://monitor:secret@rabbit.example.com:15671"
        )
    return url


def replica(raw: object) -> str:
    url = database(raw)
    if not url.startswith("postgresql://"):
        raise InvalidSetting("is not a PostgreSQL URL", "Use postgresql://user@host/name of a standby, or remove it")
    return url
