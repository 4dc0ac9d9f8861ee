"""The `@command` decorator: shared options, an open database, an audit entry."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

import typer

from . import engine, output
from .command_audit import audited
from .help import examples
from .options import AsJson, ConfigFile, Database

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.service import OutboundService

Command = TypeVar("Command", bound=Callable[..., Awaitable[int | None]])

_SHARED = (
    Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
    Parameter("database", Parameter.KEYWORD_ONLY, default=None, annotation=Database),
    Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=ConfigFile),
)


class CommandContext(NamedTuple):
    """The engine that a command uses, and how it prints its result."""

    app: App
    outbound: OutboundService
    as_json: bool

    def answer(self, row: output.Row, in_words: Callable[[], None]) -> None:
        """Print one item: as JSON with --json, otherwise by `in_words`."""
        if self.as_json:
            output.say_json(row)
        else:
            in_words()

    def done(self, row: output.Row, text: str) -> None:
        """Print what was done to one item: as JSON with --json, otherwise its id and a text."""
        self.answer(row, lambda: output.say((row["id"], "bold"), f" {text}"))

    def listing(self, rows: list[Any], columns: list[output.Column], *, nothing: str, more: str | None = None) -> None:
        """Print a list. `more` is the cursor of the next page; `nothing` is printed for an empty list."""
        now = self.app.clock.now()
        output.listing(rows, columns, as_json=self.as_json, more=more, nothing=nothing, now=now)


def command(
    group: typer.Typer, *lines: str, name: str | None = None, fast: bool = False
) -> Callable[[Command], Command]:
    """Register `async def name(ctx, ...)` as a command, with these examples. It returns the exit code; None means 0.

    Adds `--json`, `--database` and `--config`. `fast` uses uvloop if it is installed. A parameter whose type
    is a dataclass becomes one option per field.
    """

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def call(*, as_json: bool, database: str | None, config: Any, **given: Any) -> None:
            async def work() -> int | None:
                target = next((given[one] for one in words if isinstance(given[one], str)), None)
                async with engine.opened(engine.settings(config, database)) as app, audited(app, what, target):
                    return await function(CommandContext(app, app.outbound, as_json), **_gather(own, given))

            if code := engine.run(work(), fast=fast):
                raise typer.Exit(code)

        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]  # without the context
        words = [it.name for it in own if it.kind is not Parameter.KEYWORD_ONLY]
        what = f"{function.__module__.rpartition('.')[2].strip('_')}.{name or function.__name__.strip('_')}"
        shown = [*(one for it in own for one in _spread(it)), *_SHARED]
        call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        call.__annotations__ = {it.name: it.annotation for it in shown}
        group.command(name, epilog=examples(*lines))(call)
        return function

    return register


def _spread(it: Parameter) -> list[Parameter]:
    """Return the parameter itself, or one parameter per field of its dataclass."""
    if not is_dataclass(it.annotation):
        return [it]
    hints = get_type_hints(it.annotation, include_extras=True)
    return [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(it.annotation)
    ]


def _gather(own: list[Parameter], given: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the function, with dataclasses built from their fields."""
    return {
        it.name: it.annotation(**{one.name: given[one.name] for one in _spread(it)})
        if _spread(it) != [it]
        else given[it.name]
        for it in own
    }
