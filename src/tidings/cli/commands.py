"""Commands that ask the engine: the options all of them share, and the database open for their length."""

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
    """What a command asks with, and how its answer is wanted."""

    app: App
    desk: OutboundService
    as_json: bool

    def answer(self, row: output.Row, in_words: Callable[[], None]) -> None:
        """One thing: JSON if that is wanted, otherwise in words."""
        if self.as_json:
            output.say_json(row)
        else:
            in_words()

    def done(self, row: output.Row, text: str) -> None:
        """What was done to one thing: JSON if that is wanted, otherwise its id and a text."""
        self.answer(row, lambda: output.say((row["id"], "bold"), f" {text}"))

    def listing(
        self,
        rows: list[Any],
        columns: list[output.Column],
        *,
        nothing: str,
        more: str | None = None,
    ) -> None:
        """Many things. `more` is where the next page begins, `nothing` what to say when there are none."""
        output.listing(rows, columns, as_json=self.as_json, more=more, nothing=nothing)


def command(
    group: typer.Typer, name: str | None = None, *, epilog: str | None = None, fast: bool = False
) -> Callable[[Command], Command]:
    """Make a command of `async def it(ask, ...)`. What it returns is the exit code; None is 0.

    `--json`, `--database` and `--config` come with it. `fast` takes the quicker event loop, for long work.
    A parameter that is a dataclass stands for one option per field.
    """

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def call(*, as_json: bool, database: str | None, config: Any, **given: Any) -> None:
            async def work() -> int | None:
                target = next((given[one] for one in words if isinstance(given[one], str)), None)
                async with (
                    engine.opened(engine.settings(config, database)) as app,
                    audited(app, what, target),
                ):
                    return await function(CommandContext(app, app.desk, as_json), **_gathered(own, given))

            if code := engine.run(work(), fast=fast):
                raise typer.Exit(code)

        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]  # without `ask`
        words = [it.name for it in own if it.kind is not Parameter.KEYWORD_ONLY]
        what = f"{function.__module__.rpartition('.')[2]}.{name or function.__name__.strip('_')}"
        shown = [*(one for it in own for one in _spread(it)), *_SHARED]
        call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        call.__annotations__ = {it.name: it.annotation for it in shown}
        group.command(name, epilog=epilog)(call)
        return function

    return register


def _spread(it: Parameter) -> list[Parameter]:
    """A parameter; if it is a dataclass, one for each of its fields."""
    if not is_dataclass(it.annotation):
        return [it]
    hints = get_type_hints(it.annotation, include_extras=True)
    return [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(it.annotation)
    ]


def _gathered(own: list[Parameter], given: dict[str, Any]) -> dict[str, Any]:
    """What the function is called with: its dataclasses made of what was given for their fields."""
    return {
        it.name: it.annotation(**{one.name: given[one.name] for one in _spread(it)})
        if _spread(it) != [it]
        else given[it.name]
        for it in own
    }
