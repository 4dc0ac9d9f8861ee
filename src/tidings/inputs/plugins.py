"""Kinds of channels and connectors: found by name, and their settings read from a table of options.

Nothing is guessed: an option that is unknown or malformed is refused, and the error names the table, the
option and the remedy. Values of secrets are never repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple, Protocol, TypeVar

from ..model.errors import Misconfigured

Read = Callable[[object], object]  # raises ValueError with what the value must be


class Configurable(Protocol):
    """A kind whose settings are made of options; `judge` raises ValueError(option, problem, remedy)."""

    @property
    def settings(self) -> Callable[..., Any]: ...
    @property
    def judge(self) -> Callable[[Any], object]: ...


K = TypeVar("K")


class OptionsTable(NamedTuple):
    """Where options stand: how errors begin, and where a missing option is to be added."""

    name: str
    place: str

    def settings_of(self, kind: Configurable, given: Mapping[str, object]) -> Any:
        """The finished settings of a kind, judged; raises Misconfigured."""
        try:
            settings = kind.settings(**given)
            kind.judge(settings)
        except TypeError as error:  # an option that its settings cannot do without
            missing = (re.findall(r"'(\w+)'", str(error)) or ["an option"])[0]
            raise self.wrong(missing, "it is missing", f"Add {missing} to {self.place}") from error
        except ValueError as error:
            if len(error.args) != 3:
                raise
            option, problem, remedy = error.args
            raise self.wrong(option, problem, remedy) from error
        return settings

    def read(self, options: Mapping[str, object], readers: Mapping[str, Read]) -> dict[str, object]:
        """Every option as its reader reads it; raises Misconfigured."""
        return {option: self._read(option, value, readers) for option, value in options.items()}

    def wrong(self, option: str, problem: str, remedy: str) -> Misconfigured:
        """The error that names the table and the option."""
        return Misconfigured(f"{self.name}, option {option!r}: {problem}", remedy=remedy, field=option)

    def _read(self, option: str, value: object, readers: Mapping[str, Read]) -> object:
        read = readers.get(option)
        if read is None:
            raise self.wrong(option, "there is no such option", hint(option, readers))
        try:
            return read(value)
        except ValueError as error:
            raise self.wrong(option, str(error), f"Correct {option} or leave it out") from error


class KindRegistry(Mapping[str, K]):
    """The built-in kinds by name: one module each, imported on first use, which defines `constant`."""

    def __init__(self, constant: str, package: str, names: Sequence[str]) -> None:
        self._constant = constant
        self._package = package
        self._names = names

    def __getitem__(self, name: str) -> K:
        if name not in self._names:
            raise KeyError(name)
        kind: K = getattr(import_module(f".{name}", self._package), self._constant)
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load_entry_point(type_: type[K], points: Iterable[EntryPoint], table: OptionsTable) -> K | None:
    """A kind that another installed package brings; raises Misconfigured if it cannot be used."""
    for found in points:
        try:
            kind = found.load()
        except Exception as error:
            problem = f"{found.value} cannot be loaded ({error})"
            raise table.wrong("kind", problem, "Fix or remove that package") from error
        if not isinstance(kind, type_):
            problem = f"{found.value} is not a {type_.__name__}"
            raise table.wrong("kind", problem, "Ask the author of that package to fix it")
        return kind
    return None


def hint(given: str, known: Collection[str]) -> str:
    """The known name that is meant, or all of them."""
    close = get_close_matches(given, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(known))}"
