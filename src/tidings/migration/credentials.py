"""Credentials of a job: by reference only, `env:NAME` or `file:/path`, resolved where they are used (C9).

A job is stored, shown and sent to other nodes as it was written, so nothing secret may be written in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ..model.errors import Invalid, Misconfigured

_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passwd", "passphrase", "apikey"}
    | {"authorization", "credential", "credentials", "cookie", "signature"}
)
_KEY = re.compile(r"(?:api|access|auth|account|private|secret|signing|subscription)[_-]?keys?\b")
_REFERENCE = re.compile(r"(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{%[^%]*%\}")


def refuse_clear(options: Mapping[str, Any], place: str, secrets: Collection[str]) -> None:
    """Refuse a secret that stands in the job itself; `secrets` are the options that the connector names."""
    for name, value in options.items():
        _refuse(value, f"{place}.{name}", secret=name in secrets or _sounds_secret(name))


def _refuse(value: object, place: str, *, secret: bool) -> None:
    if isinstance(value, Mapping):
        for name, entry in value.items():
            _refuse(entry, f"{place}.{name}", secret=secret or _sounds_secret(str(name)))
    elif isinstance(value, list | tuple):
        for entry in value:
            _refuse(entry, place, secret=secret)
    elif (secret and not _is_harmless(value)) or (isinstance(value, str) and _has_secret(value)):
        raise Invalid(
            f"{place} holds a secret in clear",
            field=place,
            remedy=f'write {place.rpartition(".")[2]} = "env:NAME" or "file:/path", and put it there',
        )


def resolve(value: Any, place: str, *, environ: Mapping[str, str], folder: Path) -> Any:
    """The value with its references replaced; raises Misconfigured, which never repeats a secret."""
    if isinstance(value, Mapping):
        return {
            name: resolve(entry, f"{place}.{name}", environ=environ, folder=folder)
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [resolve(entry, place, environ=environ, folder=folder) for entry in value]
    if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
        return value
    scheme, _, name = value.partition(":")
    if scheme == "file":
        return _from_file(folder / name, place)
    if not environ.get(name):
        problem = f"{place} refers to the variable {name}, which is not set"
        raise Misconfigured(problem, remedy=f"Set {name} where the workers run", field=place)
    return environ[name]


def _from_file(path: Path, place: str) -> str:
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a text"
        problem = f"{place} refers to the file {path}, which cannot be read ({why})"
        raise Misconfigured(problem, remedy="Check the path and its permissions", field=place) from None
    if not found:
        problem = f"{place} refers to the file {path}, which is empty"
        raise Misconfigured(problem, remedy="Put the secret into it", field=place)
    return found


def _sounds_secret(name: str) -> bool:
    """By its words; a bare `key` may be what records are told apart by."""
    low = name.lower()
    return bool(_WORDS & set(re.split(r"[_\-\s]", low)) or _KEY.search(low))


def _is_harmless(value: object) -> bool:
    """A reference, nothing, a yes or no, or nothing but placeholders, such as "Bearer {%secrets.key%}"."""
    if value is None or isinstance(value, bool) or value == "":
        return True
    if not isinstance(value, str):
        return False
    rest = _PLACEHOLDER.sub("", value)
    is_template = rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")
    return is_template or bool(_REFERENCE.fullmatch(value))


def _has_secret(text: str) -> bool:
    """Whether a URL has a password or a secret in its query."""
    if "://" not in text:
        return False
    try:
        parts = urlsplit(text)
        if parts.password:
            return True
    except ValueError:
        return True  # it tried to be a URL, and nobody can say what is in it
    return any(_sounds_secret(name) and not _is_harmless(value) for name, value in parse_qsl(parts.query))
