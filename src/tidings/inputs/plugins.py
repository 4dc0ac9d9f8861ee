"""Channel and connector kinds: registry by name, plugins (entry points) and options tables.

Unknown or invalid options raise Misconfigured with the table, the option and the remedy. Secrets are never
repeated in errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple, Protocol, TypeVar

from ..model.errors import Misconfigured
from .fields import closest

Read = Callable[[object], object]  # raises ValueError that says what the value must be


class Configurable(Protocol):
    """A kind with settings; `judge` validates them and raises ValueError(option, problem, remedy)."""

    @property
    def settings(self) -> Callable[..., Any]: ...
    @property
    def judge(self) -> Callable[[Any], object]: ...


K = TypeVar("K")


class OptionsTable(NamedTuple):
    """A table of options: its name in errors, and the place to add missing options."""

    name: str
    place: str

    def settings_of(self, kind: Configurable, given: Mapping[str, object]) -> Any:
        """Build and validate the settings of a kind; raise Misconfigured."""
        try:
            settings = kind.settings(**given)
            kind.judge(settings)
        except TypeError as error:  # a required option is missing
            missing = (re.findall(r"'(\w+)'", str(error)) or ["an option"])[0]
            raise self.wrong(missing, "it is missing", f"Add {missing} to {self.place}") from error
        except ValueError as error:
            if len(error.args) != 3:
                raise
            option, problem, remedy = error.args
            raise self.wrong(option, problem, remedy) from error
        return settings

    def read(self, options: Mapping[str, object], readers: Mapping[str, Read]) -> dict[str, object]:
        """Parse every option with its reader; raise Misconfigured."""
        return {option: self._read(option, value, readers) for option, value in options.items()}

    def wrong(self, option: str, problem: str, remedy: str) -> Misconfigured:
        """Return the error for an option of this table."""
        return Misconfigured(f"{self.name}, option {option!r}: {problem}", remedy=remedy, field=option)

    def _read(self, option: str, value: object, readers: Mapping[str, Read]) -> object:
        read = readers.get(option)
        if read is None:
            raise self.wrong(option, "unknown option", hint(option, readers))
        try:
            return read(value)
        except ValueError as error:
            raise self.wrong(option, str(error), f"Correct or remove {option}") from error


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
    """Load a kind from another package; raise Misconfigured if that fails."""
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
    """Suggest the closest known name, or list all."""
    close = closest(given, known)
    return f"Did you mean {close!r}?" if close else f"Known names: {', '.join(sorted(known))}"
