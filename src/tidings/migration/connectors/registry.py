"""Connectors by name: turns one table of a job into a source or a target, or says what is wrong with it.

Nothing is guessed: an option that is unknown or malformed refuses the job, and the error names the option
and the remedy. Values of secrets are never repeated. A connector is one file with its `CONNECTOR`, and one
line here; another package brings its own through the entry point group `tidings.connectors`.
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
from ..words import Source, Target
from .options import Connector, Now, Read

GROUP = "tidings.connectors"


class _Connectors(Mapping[str, Connector]):
    """Our own by name. A file is read when its connector is asked for: a job uses two."""

    _names = ("affinity", "attio", "csv", "http", "ndjson", "sql")

    def __getitem__(self, name: str) -> Connector:
        if name not in self._names:
            raise KeyError(name)
        found: Connector = import_module(f".{name}", __package__).CONNECTOR
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


CONNECTORS: Mapping[str, Connector] = _Connectors()


def source(kind: str, options: Mapping[str, object], *, now: Now | None = None) -> Source:
    """The source that a table describes; raises Misconfigured."""
    known, settings = settings_of("source", kind, options)
    if known.source is None:
        raise _misconfigured("source", "kind", f"nothing can be read from {kind!r}", "Use it as the target")
    return known.source(settings, now or SystemClock().now)


def target(kind: str, options: Mapping[str, object], *, now: Now | None = None) -> Target:
    """The target that a table describes; raises Misconfigured."""
    known, settings = settings_of("target", kind, options)
    if known.target is None:
        raise _misconfigured("target", "kind", f"nothing can be written to {kind!r}", "Use it as the source")
    return known.target(settings, now or SystemClock().now)


def connector(kind: str, *, place: str = "source") -> Connector:
    """A connector by its name, ours or another package's; raises Misconfigured."""
    known = CONNECTORS.get(kind) or _from_elsewhere(place, kind)
    if known is None:
        everything = {*CONNECTORS, *(found.name for found in entry_points(group=GROUP))}
        raise _misconfigured(place, "kind", f"{kind!r} is no kind of system", _hint(kind, everything))
    return known


def settings_of(place: str, kind: str, options: Mapping[str, object]) -> tuple[Connector, Any]:
    """The connector and its settings, judged, without touching anything; raises Misconfigured."""
    known = connector(kind, place=place)
    given = {option: _read(place, option, value, known.options) for option, value in options.items()}
    try:
        settings = known.settings(**given)
        known.judge(settings)
    except TypeError as error:  # an option that its settings cannot do without
        missing = (re.findall(r"'(\w+)'", str(error)) or ["an option"])[0]
        raise _misconfigured(place, missing, "it is missing", f"Add {missing} to the {place}") from error
    except ValueError as error:
        if len(error.args) != 3:
            raise
        option, problem, remedy = error.args
        raise _misconfigured(place, option, problem, remedy) from error
    return known, settings


def _from_elsewhere(place: str, kind: str) -> Connector | None:
    """A connector that another installed package brings."""
    for found in entry_points(group=GROUP, name=kind):
        try:
            brought = found.load()
        except Exception as error:
            raise _misconfigured(
                place, "kind", f"{found.value} cannot be loaded ({error})", "Mend or remove that package"
            ) from error
        if not isinstance(brought, Connector):
            remedy = "Ask whoever wrote that package"
            raise _misconfigured(place, "kind", f"{found.value} is no Connector", remedy)
        return brought
    return None


def _read(place: str, option: str, value: object, readers: Mapping[str, Read]) -> object:
    read = readers.get(option)
    if read is None:
        raise _misconfigured(place, option, "there is no such option", _hint(option, set(readers)))
    try:
        return read(value)
    except ValueError as error:
        raise _misconfigured(place, option, str(error), f"Correct {option} or leave it out") from error


def _misconfigured(place: str, option: str, problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(f"The {place}, option {option!r}: {problem}", remedy=remedy, field=option)


def _hint(given: str, known: set[str]) -> str:
    close = get_close_matches(given, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(known))}"
