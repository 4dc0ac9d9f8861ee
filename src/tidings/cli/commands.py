"""Commands that ask the engine: the options all of them share, and the database open for their length."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from . import engine, output
from .noting import noted
from .options import AsJson, ConfigFile, Database

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.desk import Desk

Command = TypeVar("Command", bound=Callable[..., Awaitable[int | None]])

_SHARED = (
    Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
    Parameter("database", Parameter.KEYWORD_ONLY, default=None, annotation=Database),
    Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=ConfigFile),
)


class Ask(NamedTuple):
    """What a command asks with, and how its answer is wanted."""

    app: App
    desk: Desk
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
    """

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def call(*, as_json: bool, database: str | None, config: Any, **given: Any) -> None:
            async def work() -> int | None:
                target = next((given[one] for one in words if isinstance(given[one], str)), None)
                async with (
                    engine.opened(engine.settings(config, database)) as app,
                    noted(app, what, target),
                ):
                    return await function(Ask(app, app.desk, as_json), **given)

            if code := engine.run(work(), fast=fast):
                raise typer.Exit(code)

        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]  # without `ask`
        words = [it.name for it in own if it.kind is not Parameter.KEYWORD_ONLY]
        what = f"{function.__module__.rpartition('.')[2]}.{name or function.__name__.strip('_')}"
        call.__signature__ = signature.replace(parameters=[*own, *_SHARED])  # type: ignore[attr-defined]
        call.__annotations__ = {it.name: it.annotation for it in [*own, *_SHARED]}
        group.command(name, epilog=epilog)(call)
        return function

    return register
