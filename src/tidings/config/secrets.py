"""Secrets: the type Secret, and masking of secrets in values and URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ..model import durations
from ..model.errors import Misconfigured

MASK = "***"

_SECRET_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passphrase"}
    | {"key", "keys", "authorization", "credential", "credentials"}
)

# Path segments that cannot be tokens: words, versions, short numbers and dates, placeholders.
_HARMLESS = re.compile(
    r"[a-z]{1,16}(?:[-_.][a-z]{1,16}){0,3}|v[0-9]{1,3}(?:\.[0-9]{1,3})?|[0-9]{1,4}(?:-[0-9]{2}){0,2}|\{%?[^{}]*\}"
)
_SEGMENT = re.compile(r"[^/?]+(?=[/?]|$)")
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})


class Secret(str):
    """A string whose repr shows its reference, never its value."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, value: str, shown: str = MASK) -> Self:
        """`shown` is the reference that it was resolved from, if there was one."""
        secret = super().__new__(cls, value)
        secret.shown = shown
        return secret

    def __repr__(self) -> str:
        return f"<secret {self.shown}>"


def mask_url(url: str) -> str:
    """Mask the password, the query, and path segments of web URLs that could be tokens."""
    masked = re.sub(r"^([^:]+://[^:@/?#]*):.*@", rf"\1:{MASK}@", url, flags=re.DOTALL)
    masked = re.sub(r"[?#].*", f"?{MASK}", masked, flags=re.DOTALL)
    web = re.match(r"https?://[^/]*", masked, re.IGNORECASE)
    return masked if web is None else web[0] + _SEGMENT.sub(_mask_segment, masked[web.end() :])


def _mask_segment(found: re.Match[str]) -> str:
    return found[0] if found[0] == MASK or _HARMLESS.fullmatch(found[0]) else MASK


class MissingSecret(Secret):
    """A reference to a secret that is not set; `error` says which."""

    error: Misconfigured

    def __new__(cls, reference: str, error: Misconfigured) -> Self:
        """Stand for the secret; its text is the reference."""
        secret = super().__new__(cls, reference, reference)
        secret.error = error
        return secret


def find_missing(value: object) -> Misconfigured | None:
    """Return the error of a secret that is not set in this value, if any."""
    if isinstance(value, MissingSecret):
        return value.error
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((error for entry in inner if (error := find_missing(entry))), None)


def _meaning(name: str, value: object, within: str) -> str:
    """Return the name that decides whether a value is secret; unknown headers count as secret."""
    is_plain = name.lower() in _PLAIN_HEADERS or (isinstance(value, str) and is_template(value))
    return "" if is_plain and within == "headers" else "secret" if within == "headers" else name


def split_urls(text: str) -> list[str]:
    """Split URLs separated by commas; a comma inside a URL does not split it."""
    return [part for part in re.split(r"\s*,\s*(?=\w+://|$)", text) if part]


def has_password(text: str) -> bool:
    try:
        return "://" in text and any(urlsplit(url).password for url in split_urls(text))
    except ValueError:
        return True  # an invalid URL may still contain a password


def is_secret(name: str) -> bool:
    # The id of a GroupMe bot is enough to post as the bot.
    return name == "bot_id" or bool(_SECRET_WORDS & set(re.split(r"[_-]", name.lower())))


def is_template(value: str) -> bool:
    """Return whether a value has only placeholders, such as "Bearer {%secrets.key%}", and so no secret."""
    rest = re.sub(r"\{%[^%]*%\}", "", value)
    return rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")


def mask_secrets(value: Any, key: str = "") -> Any:
    """Return a value that is safe to print."""
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
