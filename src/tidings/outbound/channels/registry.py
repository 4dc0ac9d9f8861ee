"""Channels by name: turns one table of the configuration into a channel, or says what is wrong with it.

Nothing is guessed: an option that is unknown or malformed stops the start, and the error names the channel,
the option and the remedy. Values of secrets are never repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from ...kernel.clock import SystemClock
from ...model import durations
from ...model.errors import Misconfigured
from ...model.task import OnUnknown
from ..addresses import Forbidden, check_url
from ..signature import parse_secret
from .base import Channel
from .console import ConsoleChannel, ConsoleSettings
from .noop import NoopChannel, NoopSettings
from .sandbox import ANY_HOST, SandboxChannel, SandboxSettings
from .webhook import WebhookChannel, WebhookSettings

Now = Callable[[], int]
Read = Callable[[object], object]  # raises ValueError with what the value must be


class Kind(NamedTuple):
    """How a kind of channel is made: its settings, how to read its own options, and the channel itself."""

    settings: Callable[..., Any]
    make: Callable[[Any, Now], Channel]
    options: Mapping[str, Read]


def build(name: str, kind: str, options: Mapping[str, object], *, now: Now | None = None) -> Channel:
    """The channel that a table of the configuration describes; raises Misconfigured."""
    known = KINDS.get(kind)
    if known is None:
        raise _misconfigured(name, "kind", f"{kind!r} is no kind of channel", _hint(kind, KINDS))
    readers = {**COMMON, **known.options}
    given = {option: _read(name, option, value, readers) for option, value in options.items()}
    settings = known.settings(**given)
    _check_url(name, settings)
    return known.make(settings, now or SystemClock().now)


def _read(name: str, option: str, value: object, readers: Mapping[str, Read]) -> object:
    read = readers.get(option)
    if read is None:
        raise _misconfigured(name, option, "there is no such option", _hint(option, readers))
    try:
        return read(value)
    except ValueError as error:
        raise _misconfigured(name, option, str(error), f"Correct {option} or leave it out") from error


def _check_url(name: str, settings: object) -> None:
    """A URL of the configuration must pass the guard too, except that the sandbox may be anywhere."""
    match settings:
        case WebhookSettings(url=str(url)):
            rules = settings.rules
            remedy = "Use a public https URL; for development there are allow_http and allow_private"
        case SandboxSettings(url=url):
            rules, remedy = ANY_HOST, "Use the sandbox's address, such as http://127.0.0.1:8025"
        case _:
            return
    try:
        check_url(url, rules)
    except Forbidden as error:
        raise _misconfigured(name, "url", str(error), remedy) from error


def _misconfigured(name: str, option: str, problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(f"Channel {name!r}, option {option!r}: {problem}", remedy=remedy, field=option)


def _hint(given: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(given, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(known))}"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it must be a text that is not empty")
    return value


def _yes_or_no(value: object) -> bool:
    said = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise ValueError("it must be true or false")
    return said


def _number(value: object) -> object:
    """A number that came as text, because the environment knows nothing else."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value) if "." in value else int(value)
    return value


def _rate(value: object) -> float:
    value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6:
        raise ValueError("it must be a number of messages per second above 0")
    return float(value)


def _length(value: object) -> object:
    length = durations.parse(cast(str, value))
    if not length:
        raise ValueError("it must be longer than nothing")
    return length


def _size(value: object) -> int:
    value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 16 << 20:
        raise ValueError("it must be a number of bytes from 1 to 16777216")
    return value


def _on_unknown(value: object) -> OnUnknown:
    if value not in (OnUnknown.RESEND, OnUnknown.HOLD):  # none of these kinds can be asked
        raise ValueError("it must be 'resend' or 'hold'")
    return OnUnknown(cast(str, value))


def _ports(value: object) -> frozenset[int]:
    given = value.split(",") if isinstance(value, str) else value
    ports = [_number(port) for port in (given if isinstance(given, list | tuple) else [given])]
    if not ports or not all(type(port) is int and 0 < port < 65_536 for port in ports):
        raise ValueError("it must be a list of ports, such as [443, 8443]")
    return frozenset(port for port in ports if isinstance(port, int))


def _secrets(value: object) -> tuple[str, ...]:
    given = value if isinstance(value, list | tuple) else [value]
    secrets = tuple(secret for secret in given if isinstance(secret, str))
    if not secrets or len(secrets) < len(given):
        raise ValueError("it must be a list of secrets that begin with whsec_")
    for secret in secrets:
        parse_secret(secret)
    return secrets


COMMON: Mapping[str, Read] = {
    "on_unknown": _on_unknown,
    "deadline": _length,
    "policy": _text,
    "per_second": _rate,
    "per_recipient": _length,
}

KINDS: Mapping[str, Kind] = {
    "console": Kind(ConsoleSettings, lambda settings, now: ConsoleChannel(settings, now=now), {}),
    "noop": Kind(NoopSettings, lambda settings, now: NoopChannel(settings), {"delay": _length}),
    "sandbox": Kind(SandboxSettings, lambda settings, now: SandboxChannel(settings, now=now), {"url": _text}),
    "webhook": Kind(
        WebhookSettings,
        lambda settings, now: WebhookChannel(settings, now=now),
        {
            "url": _text,
            "secrets": _secrets,
            "allow_private": _yes_or_no,
            "allow_http": _yes_or_no,
            "ports": _ports,
            "max_answer": _size,
        },
    ),
}
