"""Channels by name: turns one table of the configuration into a channel, or says what is wrong with it.

Nothing is guessed: an option that is unknown or malformed stops the start, and the error names the channel,
the option and the remedy. Values of secrets are never repeated. A kind is one file with its `KIND`, and one
line here; another package brings its own through the entry point group `tidings.channels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ...kernel.clock import SystemClock
from ...model.errors import Misconfigured
from .base import Channel
from .options import COMMON, Kind, Now, Read

GROUP = "tidings.channels"


class _Kinds(Mapping[str, Kind]):
    """Our own kinds by name. A file is read when its kind is asked for: most people use one or two."""

    _names = (
        "apprise", "console", "discord", "email", "groupme", "http", "noop", "sandbox", "slack", "telegram",
        "twilio", "webhook", "whatsapp_cloud", "whatsapp_session",
    )  # fmt: skip

    def __getitem__(self, name: str) -> Kind:
        if name not in self._names:
            raise KeyError(name)
        kind: Kind = import_module(f".{name}", __package__).KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


KINDS: Mapping[str, Kind] = _Kinds()


def build(name: str, kind: str, options: Mapping[str, object], *, now: Now | None = None) -> Channel:
    """The channel that a table of the configuration describes; raises Misconfigured."""
    known, settings = settings_of(name, kind, options)
    return known.make(settings, now or SystemClock().now)


def settings_of(name: str, kind: str, options: Mapping[str, object]) -> tuple[Kind, Any]:
    """The kind and the settings that a table describes, judged; raises Misconfigured."""
    known = KINDS.get(kind) or _from_elsewhere(name, kind)
    if known is None:
        raise _misconfigured(name, "kind", f"{kind!r} is no kind of channel", _hint(kind, KINDS))
    readers = {**COMMON, **known.options}
    given = {option: _read(name, option, value, readers) for option, value in options.items()}
    try:
        settings = known.settings(**given)
        known.judge(settings)
    except TypeError as error:  # an option that its settings cannot do without
        missing = (re.findall(r"'(\w+)'", str(error)) or ["an option"])[0]
        raise _misconfigured(name, missing, "it is missing", f"Add {missing} to [channels.{name}]") from error
    except ValueError as error:
        if len(error.args) != 3:
            raise
        option, problem, remedy = error.args
        raise _misconfigured(name, option, problem, remedy) from error
    return known, settings


def _from_elsewhere(name: str, kind: str) -> Kind | None:
    """A kind that another installed package brings."""
    for found in entry_points(group=GROUP, name=kind):
        try:
            brought = found.load()
        except Exception as error:
            raise _misconfigured(
                name, "kind", f"{found.value} cannot be loaded ({error})", "Mend or remove that package"
            ) from error
        if not isinstance(brought, Kind):
            raise _misconfigured(name, "kind", f"{found.value} is no Kind", "Ask whoever wrote that package")
        return brought
    return None


def _read(name: str, option: str, value: object, readers: Mapping[str, Read]) -> object:
    read = readers.get(option)
    if read is None:
        raise _misconfigured(name, option, "there is no such option", _hint(option, readers))
    try:
        return read(value)
    except ValueError as error:
        raise _misconfigured(name, option, str(error), f"Correct {option} or leave it out") from error


def _misconfigured(name: str, option: str, problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(f"Channel {name!r}, option {option!r}: {problem}", remedy=remedy, field=option)


def _hint(given: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(given, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(known))}"
