"""What must not be shown: values, names and URLs that hold a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ..model import durations

MASK = "***"

_SECRET_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passphrase"}
    | {"key", "keys", "authorization", "credential", "credentials"}
)


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


def mask_url(url: str) -> str:
    """A URL without its password and its query, both of which may hold secrets; in doubt it hides more."""
    masked = re.sub(r"^([^:]+://[^:@/?#]*):.*@", rf"\1:{MASK}@", url, flags=re.DOTALL)
    return re.sub(r"[?#].*", f"?{MASK}", masked, flags=re.DOTALL)


def has_password(text: str) -> bool:
    try:
        return "://" in text and bool(urlsplit(text).password)
    except ValueError:
        return True  # not a URL that can be read, but it tried to be one


def is_secret(name: str) -> bool:
    # Whoever knows the id of a GroupMe bot can post as the bot.
    return name == "bot_id" or bool(_SECRET_WORDS & set(re.split(r"[_-]", name.lower())))


def is_template(value: str) -> bool:
    """Whether a value is placeholders only, such as "Bearer {%secrets.key%}": there is no secret in it."""
    rest = re.sub(r"\{%[^%]*%\}", "", value)
    return rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")


def show(value: Any, key: str = "") -> Any:
    """A value as it may be printed."""
    if isinstance(value, Secret):
        return value.shown
    if isinstance(value, Mapping):
        return {name: show(entry, name) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [show(entry, key) for entry in value]
    if isinstance(value, timedelta):
        return durations.spell(value)
    if isinstance(value, ZoneInfo):
        return value.key
    if isinstance(value, str) and value and is_secret(key):
        return MASK
    return mask_url(value) if isinstance(value, str) and "://" in value else value
