"""Credentials of a job: by reference only, resolved where they are used.

`env:NAME`, `file:/path`, or `credential:NAME` from the configuration. A job is stored, displayed and shared
with other nodes as written, so it must not contain secrets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ..model.errors import Invalid, Misconfigured

_WORDS = frozenset(
    {"secret", "secrets", "token", "tokens", "password", "passwords", "passwd", "passphrase", "apikey"}
    | {"authorization", "credential", "credentials", "cookie", "signature"}
)
_KEY = re.compile(r"(?:api|access|auth|account|private|secret|signing|subscription)[_-]?keys?\b")
_REFERENCE = re.compile(r"(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+|credential:[A-Za-z0-9_-]+)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{%[^%]*%\}")


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret in the configuration that jobs from the API may use, and the hosts that may receive it."""

    value: str = field(repr=False)
    hosts: frozenset[str] = frozenset()  # empty: it is a database URL


class CredentialLookup(NamedTuple):
    """Where references are resolved; None: such references are not allowed."""

    credentials: Mapping[str, str]
    environ: Mapping[str, str] | None = None
    folder: Path | None = None  # base of a relative `file:`


def is_reference(text: str) -> bool:
    """Return whether a text is a reference to a secret."""
    return bool(_REFERENCE.fullmatch(text))


def refuse_plaintext_secrets(options: Mapping[str, Any], place: str, secrets: Collection[str]) -> None:
    """Raise Invalid for a plaintext secret in the job; `secrets` are options that the connector declares."""
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
        remedy = f'write {place.rpartition(".")[2]} = "env:NAME" or "file:/path", and put it there'
        raise Invalid(f"{place} contains a secret in plain text", field=place, remedy=remedy)


def resolve_references(options: Mapping[str, Any], place: str, lookup: CredentialLookup) -> dict[str, Any]:
    """Return the options with references resolved; raises Misconfigured, without repeating a secret."""
    return {name: _resolve(entry, f"{place}.{name}", lookup) for name, entry in options.items()}


def _resolve(value: Any, place: str, lookup: CredentialLookup) -> Any:
    if isinstance(value, Mapping):
        return resolve_references(value, place, lookup)
    if isinstance(value, list | tuple):
        return [_resolve(entry, place, lookup) for entry in value]
    if not isinstance(value, str) or not is_reference(value):
        return value
    scheme, _, name = value.partition(":")
    if scheme == "file" and lookup.folder is not None:
        return _from_file(lookup.folder / name, place)
    if scheme == "env" and lookup.environ is not None:
        return _named(lookup.environ, name, place, "variable", f"Set {name} where the workers run")
    if scheme == "credential":
        remedy = f"Add [credentials.{name}] to the configuration of the workers"
        return _named(lookup.credentials, name, place, "credential", remedy)
    problem = f"{place} is a reference to {scheme}:, which this job may not use"
    raise Misconfigured(problem, remedy='Write "credential:NAME"', field=place)


def _named(known: Mapping[str, str], name: str, place: str, kind: str, remedy: str) -> str:
    if not known.get(name):
        problem = f"{place} refers to the {kind} {name}, which is not set"
        raise Misconfigured(problem, remedy=remedy, field=place)
    return known[name]


def _from_file(path: Path, place: str) -> str:
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        problem = f"{place} refers to the file {path}, which cannot be read ({why})"
        raise Misconfigured(problem, remedy="Check the path and its permissions", field=place) from None
    if not found:
        problem = f"{place} refers to the file {path}, which is empty"
        raise Misconfigured(problem, remedy="Put the secret into it", field=place)
    return found


def _sounds_secret(name: str) -> bool:
    """Return whether a name suggests a secret; a bare `key` may identify records."""
    low = name.lower()
    return bool(_WORDS & set(re.split(r"[_\-\s]", low)) or _KEY.search(low))


def _is_harmless(value: object) -> bool:
    """Return whether a value cannot be a secret: a reference, empty, a boolean, or only placeholders."""
    if value is None or isinstance(value, bool) or value == "":
        return True
    if not isinstance(value, str):
        return False
    rest = _PLACEHOLDER.sub("", value)
    is_template = rest != value and rest.strip().lower() in ("", "bearer", "basic", "token", "apikey")
    return is_template or bool(_REFERENCE.fullmatch(value))


def _has_secret(text: str) -> bool:
    """Return whether a URL has a password or a secret in its query."""
    if "://" not in text:
        return False
    try:
        parts = urlsplit(text)
        if parts.password:
            return True
    except ValueError:
        return True  # an invalid URL may contain anything
    return any(_sounds_secret(name) and not _is_harmless(value) for name, value in parse_qsl(parts.query))
