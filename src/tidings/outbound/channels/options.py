"""Options of channels: how a value of the configuration is read, and what it must be if it cannot.

Each reader takes what TOML or the environment gives and raises ValueError with what the value must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from ...model import durations
from ...model.task import OnUnknown
from ...wire.webhook_signatures import parse_secret
from .base import Channel

Now = Callable[[], int]
Read = Callable[[object], object]  # raises ValueError with what the value must be


class ChannelKind(NamedTuple):
    """How a kind of channel is made: its settings, how to read its own options, and the channel itself.

    `judge` looks at the finished settings and raises ValueError(option, problem, remedy) if they do not fit.
    """

    settings: Callable[..., Any]
    make: Callable[[Any, Now], Channel]
    options: Mapping[str, Read]
    judge: Callable[[Any], None] = lambda _settings: None


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be a text that is not empty")
    return value


def yes_or_no(value: object) -> bool:
    """True or false, also as text."""
    said = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise ValueError("it must be true or false")
    return said


def number(value: object) -> object:
    """A number that came as text, because the environment knows nothing else."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value) if "." in value else int(value)
    return value


def rate(value: object) -> float:
    """Messages per second."""
    value = number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6:
        raise ValueError("it must be a number of messages per second above 0")
    return float(value)


def length(value: object) -> object:
    """A length of time, such as "10 s"."""
    length = durations.parse(cast(str, value))
    if not length:
        raise ValueError("it must be longer than nothing")
    return length


def size(value: object) -> int:
    """A number of bytes."""
    value = number(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 16 << 20:
        raise ValueError("it must be a number of bytes from 1 to 16777216")
    return value


def on_unknown(value: object) -> OnUnknown:
    """What to do when nobody can say whether it was sent."""
    if value not in (OnUnknown.RESEND, OnUnknown.HOLD):  # none of these kinds can be asked
        raise ValueError("it must be 'resend' or 'hold'")
    return OnUnknown(cast(str, value))


def ports(value: object) -> frozenset[int]:
    """Ports that may be called."""
    given = value.split(",") if isinstance(value, str) else value
    ports = [number(port) for port in (given if isinstance(given, list | tuple) else [given])]
    if not ports or not all(type(port) is int and 0 < port < 65_536 for port in ports):
        raise ValueError("it must be a list of ports, such as [443, 8443]")
    return frozenset(port for port in ports if isinstance(port, int))


def secrets(value: object) -> tuple[str, ...]:
    """Signing secrets, one or several."""
    given = value if isinstance(value, list | tuple) else [value]
    secrets = tuple(secret for secret in given if isinstance(secret, str))
    if not secrets or len(secrets) < len(given):
        raise ValueError("it must be a list of secrets that begin with whsec_")
    for secret in secrets:
        parse_secret(secret)
    return secrets


COMMON: Mapping[str, Read] = {
    "on_unknown": on_unknown,
    "deadline": length,
    "policy": text,
    "per_second": rate,
    "per_recipient": length,
}
