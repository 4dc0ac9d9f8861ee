"""What must not be shown: values, names and URLs that hold a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ..model import durations

MASK = "***"

_SECRET_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passphrase"}
    | {"key", "keys", "authorization", "credential", "credentials"}
)


# Steps of a path that are certainly no token: words, versions, short numbers and dates, placeholders.
_HARMLESS = re.compile(
    r"[a-z]{1,16}(?:[-_.][a-z]{1,16}){0,3}|v[0-9]{1,3}(?:\.[0-9]{1,3})?|[0-9]{1,4}(?:-[0-9]{2}){0,2}|\{%?[^{}]*\}"
)
_STEP = re.compile(r"[^/?]+(?=[/?]|$)")
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})


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
    """A URL without what may hold secrets: its password, its query, and steps of its path that are no words.

    In doubt it hides more; only the paths of web addresses are looked at.
    """
    masked = re.sub(r"^([^:]+://[^:@/?#]*):.*@", rf"\1:{MASK}@", url, flags=re.DOTALL)
    masked = re.sub(r"[?#].*", f"?{MASK}", masked, flags=re.DOTALL)
    web = re.match(r"https?://[^/]*", masked, re.IGNORECASE)
    return masked if web is None else web[0] + _STEP.sub(_masked_step, masked[web.end() :])


def _masked_step(found: re.Match[str]) -> str:
    return found[0] if found[0] == MASK or _HARMLESS.fullmatch(found[0]) else MASK


def _meaning(name: str, value: object, within: str) -> str:
    """The name that says whether a value is secret: any header may carry one, unless it is known not to."""
    is_plain = name.lower() in _PLAIN_HEADERS or (isinstance(value, str) and is_template(value))
    return "" if is_plain and within == "headers" else "secret" if within == "headers" else name


def split_urls(text: str) -> list[str]:
    """URLs with commas between them; a comma inside a URL splits nothing."""
    return [part for part in re.split(r"\s*,\s*(?=\w+://|$)", text) if part]


def has_password(text: str) -> bool:
    try:
        return "://" in text and any(urlsplit(url).password for url in split_urls(text))
    except ValueError:
        return True  # not a URL that can be read, but it tried to be one


def is_secret(name: str) -> bool:
    # Whoever knows the id of a GroupMe bot can post as the bot.
    return name == "bot_id" or bool(_SECRET_WORDS & set(re.split(r"[_-]", name.lower())))


def is_template(value: str) -> bool:
    """Whether a value is placeholders only, such as "Bearer {%secrets.key%}": there is no secret in it."""
    rest = re.sub(r"\{%[^%]*%\}", "", value)
    return rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")


def mask_secrets(value: Any, key: str = "") -> Any:
    """A value as it may be printed."""
    if isinstance(value, Secret):
        return value.shown
    if isinstance(value, Mapping):
        return {name: mask_secrets(entry, _meaning(name, entry, key)) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [mask_secrets(entry, key) for entry in value]
    if isinstance(value, timedelta):
        return durations.humanize(value)
    if isinstance(value, ZoneInfo):
        return value.key
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and value and is_secret(key):
        return MASK
    return mask_url(value) if isinstance(value, str) and "://" in value else value
