"""The Connector definition, parsers of its options, and what a connector may access.

Each parser takes a value from TOML, YAML or JSON and raises ValueError with what the value must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, cast

from ...model import durations
from ...wire.ssrf_guard import SsrfRules, api_url, credentials_url
from .port import RecordSource, RecordTarget

Now = Callable[[], int]
OptionReader = Callable[[object], object]

ANY_HOST = SsrfRules(allow_private=True, allow_http=True)


class ConnectorReach(StrEnum):
    """What a connector accesses, which decides whether jobs from the API may use it."""

    NETWORK = "network"  # only the hosts of its options `url` and `*_url`, within the `rules` of its settings
    FOLDER = "folder"  # only files below the root that its settings get
    DATABASE = "database"  # the database of its option `url`
    ANYTHING = "anything"  # undeclared, so not available through the API


class Confinement(NamedTuple):
    """What the connectors of a job may access; None: anything the job names."""

    root: Path | None = None  # folder of its files
    rules: SsrfRules | None = None  # addresses it may call


UNCONFINED = Confinement()


class Connector(NamedTuple):
    """A kind of system: its settings, parsers of its options, and its source and target.

    `secrets` are options with credentials: a job gives them by reference only. `judge` validates the finished
    settings and raises ValueError(option, problem, remedy). `reach` declares what it accesses; without it,
    only job files on the command line may use the connector.
    """

    settings: Callable[..., Any]
    options: Mapping[str, OptionReader]
    source: Callable[[Any, Now], RecordSource] | None = None
    target: Callable[[Any, Now], RecordTarget] | None = None
    secrets: frozenset[str] = frozenset()
    judge: Callable[[Any], object] = lambda _settings: None
    reach: ConnectorReach = ConnectorReach.ANYTHING


def text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a non-empty text")
    return value


def header_value(value: object) -> str:
    """A text that is safe in a header: a line break in a credential would inject a header."""
    found = text(value).strip()
    if not found.isascii() or not found.isprintable():
        raise ValueError("must be printable ASCII")
    return found


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def count(least: int, most: int) -> OptionReader:
    """Return a parser of integers within bounds."""

    def read(value: object) -> int:
        found = _number(value)
        if type(found) is not int or not least <= found <= most:
            raise ValueError(f"must be an integer from {least} to {most}")
        return found

    return read


def rate(value: object) -> float:
    """Calls per second."""
    found = _number(value)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1e6:
        raise ValueError("must be a number of calls per second greater than zero")
    return float(found)


def duration(value: object) -> timedelta:
    """A duration such as "10 s"."""
    found = durations.parse(cast(str, value))
    if not found:
        raise ValueError("must be greater than zero")
    return found


def text_table(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in value.values()):
        raise ValueError('must be a table of texts, such as { people = "email_addresses" }')
    return dict(value)


def text_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


def one_of(*known: str) -> OptionReader:
    def read(value: object) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return str(value)

    return read


def base_url(value: object) -> str:
    """The base URL of an API: https, or http within a private network, to protect credentials."""
    return api_url(text(value))


def web_address(value: object) -> str:
    """A URL that may be called with a credential."""
    return credentials_url(text(value))


def _number(value: object) -> object:
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value) if "." in value else int(value)
    return value
