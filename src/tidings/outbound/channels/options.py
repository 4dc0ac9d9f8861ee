"""Readers of channel options, and the description of a channel kind.

A reader parses a value from TOML or the environment and raises ValueError with what it must be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ...model import durations
from ...model.task import OnUnknown
from ...wire.webhook_signatures import parse_secret
from .base import Channel

E = TypeVar("E", bound=str)
Now = Callable[[], int]
Read = Callable[[object], object]  # raises ValueError with what the value must be


class ChannelKind(NamedTuple):
    """A channel kind: its settings class, its factory, the readers of its own options.

    `judge` validates the finished settings and raises ValueError(option, problem, remedy).
    """

    settings: Callable[..., Any]
    make: Callable[[Any, Now], Channel]
    options: Mapping[str, Read]
    judge: Callable[[Any], None] = lambda _settings: None


def text(value: object) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a non-empty string")
    return value


def yes_or_no(value: object) -> bool:
    """A boolean, also written as text."""
    said = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise ValueError("must be true or false")
    return said


def number(value: object) -> object:
    """A number, also written as text, as in the environment."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value) if "." in value else int(value)
    return value


def rate(value: object) -> float:
    """Messages per second."""
    value = number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6:
        raise ValueError("must be a number of messages per second above 0")
    return float(value)


def length(value: object) -> object:
    """A duration such as "10 s", greater than zero."""
    length = durations.parse(cast(str, value))
    if not length:
        raise ValueError("must be greater than zero")
    return length


def size(value: object) -> int:
    """A size in bytes."""
    value = number(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 16 << 20:
        raise ValueError("must be a number of bytes from 1 to 16777216")
    return value


def on_unknown(value: object) -> OnUnknown:
    """What to do if it is uncertain whether a message was sent."""
    if value not in (OnUnknown.RESEND, OnUnknown.HOLD):  # no lookup in most kinds
        raise ValueError("must be 'resend' or 'hold'")
    return OnUnknown(cast(str, value))


def ports(value: object) -> frozenset[int]:
    """A list of allowed ports."""
    given = value.split(",") if isinstance(value, str) else value
    ports = [number(port) for port in (given if isinstance(given, list | tuple) else [given])]
    if not ports or not all(type(port) is int and 0 < port < 65_536 for port in ports):
        raise ValueError("must be a list of ports, such as [443, 8443]")
    return frozenset(port for port in ports if isinstance(port, int))


def secrets(value: object) -> tuple[str, ...]:
    """Signing secrets, one or several."""
    given = value if isinstance(value, list | tuple) else [value]
    secrets = tuple(secret for secret in given if isinstance(secret, str))
    if not secrets or len(secrets) < len(given):
        raise ValueError("must be a list of secrets that begin with whsec_")
    for secret in secrets:
        parse_secret(secret)
    return secrets


def choice(words: Iterable[E]) -> Callable[[object], E]:
    """Reader of one of a few words: a StrEnum, or a tuple of strings."""
    known = tuple(words)
    names = [repr(str(word)) for word in known]

    def read(value: object) -> E:
        if value not in known:
            raise ValueError(f"must be {', '.join(names[:-1])} or {names[-1]}")
        return known[known.index(value)]

    return read


def matching(pattern: re.Pattern[str], problem: str) -> Callable[[object], str]:
    """Reader of a string that matches a pattern; the value, which may be a secret, is never repeated."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(problem)
        return value

    return read


COMMON: Mapping[str, Read] = {
    "on_unknown": on_unknown,
    "deadline": length,
    "policy": text,
    "per_second": rate,
    "per_recipient": length,
    "suppress_opt_outs": yes_or_no,
}
_BY_TYPE: Mapping[object, Read] = {str: text, bool: yes_or_no, timedelta: length}


def channel_kind(
    settings: type, make: Callable[..., Channel], judge: Callable[[Any], None] = lambda _settings: None
) -> ChannelKind:
    """A kind whose options are the fields of its settings; `make` takes the settings, and `now` by keyword.

    A field's reader is the one in its `Annotated` type, or that of its type.
    """
    types = get_type_hints(settings, include_extras=True)
    own = {name: _reader(type_) for name, type_ in types.items() if name not in COMMON or "Annotated" in repr(type_)}
    return ChannelKind(settings, lambda given, now: make(given, now=now), own, judge)


def _reader(type_: Any) -> Read:
    if get_origin(type_) in (Union, UnionType):
        type_ = next(part for part in get_args(type_) if part is not NoneType)
    if hasattr(type_, "__metadata__"):
        return cast(Read, type_.__metadata__[0])
    return choice(type_) if issubclass(type_, StrEnum) else _BY_TYPE[type_]
