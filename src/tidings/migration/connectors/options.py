"""Options of connectors: how a value of a job file is read, and what it must be if it cannot.

Each reader takes what TOML, YAML or JSON gives and raises ValueError with what the value must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, cast

from ...model import durations
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from .port import RecordSource, RecordTarget

Now = Callable[[], int]
OptionReader = Callable[[object], object]

ANY_HOST = SsrfRules(allow_private=True, allow_http=True)
_PUBLIC = SsrfRules(allow_http=True)


class ConnectorReach(StrEnum):
    """What a connector touches, which decides who may use it through the API."""

    NETWORK = "network"  # only the hosts of its options `url` and `*_url`, within the `rules` of its settings
    FOLDER = "folder"  # only files below the root that its settings get
    DATABASE = "database"  # whatever its option `url` names
    ANYTHING = "anything"  # it does not say, so the API does not offer it


class Confinement(NamedTuple):
    """What a job may touch with its connectors; None: what its author names."""

    root: Path | None = None  # files are below this folder
    rules: SsrfRules | None = None  # addresses that may be called


UNCONFINED = Confinement()


class Connector(NamedTuple):
    """How a kind of system is made: its settings, how to read its options, and what it can be.

    `secrets` are the options that hold credentials: a job gives them by reference only. `judge` looks at the
    finished settings and raises ValueError(option, problem, remedy) if they do not fit. `reach` says what it
    touches; a connector that does not say is for job files of the command line only.
    """

    settings: Callable[..., Any]
    options: Mapping[str, OptionReader]
    source: Callable[[Any, Now], RecordSource] | None = None
    target: Callable[[Any, Now], RecordTarget] | None = None
    secrets: frozenset[str] = frozenset()
    judge: Callable[[Any], object] = lambda _settings: None
    reach: ConnectorReach = ConnectorReach.ANYTHING


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be a text that is not empty")
    return value


def header_value(value: object) -> str:
    """A text that may stand in a header: a credential with a line break would be a header of its own."""
    found = text(value).strip()
    if not found.isascii() or not found.isprintable():
        raise ValueError("it must have plain letters, digits and signs only")
    return found


def boolean(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def count(least: int, most: int) -> OptionReader:
    """A reader of whole numbers between two bounds."""

    def read(value: object) -> int:
        found = _number(value)
        if type(found) is not int or not least <= found <= most:
            raise ValueError(f"it must be a whole number from {least} to {most}")
        return found

    return read


def rate(value: object) -> float:
    """Calls per second."""
    found = _number(value)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1e6:
        raise ValueError("it must be a number of calls per second above 0")
    return float(found)


def duration(value: object) -> timedelta:
    """A length of time, such as "10 s"."""
    found = durations.parse(cast(str, value))
    if not found:
        raise ValueError("it must be longer than nothing")
    return found


def text_table(value: object) -> Mapping[str, str]:
    """A table of texts."""
    if not isinstance(value, Mapping) or not all(isinstance(one, str) and one for one in value.values()):
        raise ValueError('it must be a table of texts, such as { people = "email_addresses" }')
    return dict(value)


def text_list(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("it must be a list of texts")
    return tuple(value)


def one_of(*known: str) -> OptionReader:
    """A reader of a closed list of words."""

    def read(value: object) -> str:
        if value not in known:
            raise ValueError(f"it must be one of {', '.join(known)}")
        return str(value)

    return read


def base_url(value: object) -> str:
    """The address of an API: https, or http within one's own network, so that no key travels in clear."""
    given = web_address(value).rstrip("/")
    if "?" in given or "#" in given:
        raise ValueError("it must be a URL without ? and #")
    return given


def web_address(value: object) -> str:
    """A URL that may be called with a credential."""
    given = text(value)
    try:
        found = check_url(given, ANY_HOST)
    except ForbiddenUrl as error:
        raise ValueError(f"{error}; it must be an https URL") from error
    if found.scheme != "https" and not _is_near(given, found.host, found.address is not None):
        raise ValueError("it must be an https URL: over http everybody on the way could read the credentials")
    return given


def _is_near(url: str, host: str, is_address: bool) -> bool:
    if not is_address:
        return "." not in host
    with suppress(ForbiddenUrl):
        check_url(url, _PUBLIC)
        return False
    return True


def _number(value: object) -> object:
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value) if "." in value else int(value)
    return value
