"""The command tree. A call imports only the command group that it names, which keeps the start fast."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from .. import __version__
from .commands import command
from .help import SECTIONS, SectionedHelp, examples

_MODULES = {
    "broadcasts": "broadcast_recipients",
    "import": "import_",
    "inbox": "conversations",
    "migrate": "migrate_records",
    "schedules": "schedule_bulk",
}
NOUNS = tuple(name for names in SECTIONS.values() for name in names)


def full_program() -> typer.Typer:
    """Return the program with all commands."""
    return _program(NOUNS)


def program_for(words: Sequence[str]) -> typer.Typer:
    """Return the program for these words: with one command group if they name it, otherwise with all."""
    return _program(words[:1] if words and words[0] in NOUNS else NOUNS)


def program(words: Sequence[str], **options: Any) -> Any:
    """Run the program with these words."""
    return program_for(words)(list(words), **options)


def _program(nouns: Sequence[str]) -> typer.Typer:
    made = typer.Typer(
        name="tidings",
        help="Durable message scheduling and delivery, on PostgreSQL or SQLite.",
        epilog=examples(
            "tidings serve",
            'tidings send --channel phone --to ada --text "hello" --in 10s',
            "tidings messages list --state failed",
            "tidings send --help",
        ),
        cls=SectionedHelp,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    made.callback()(_root)
    for noun in nouns:
        _add(made, noun)
    return made


def _add(made: typer.Typer, noun: str) -> None:
    """Add a command group, or the single command of that name."""
    module = import_module(f"{__package__}.{_MODULES.get(noun, noun)}")
    group = getattr(module, "GROUP", None) or getattr(module, "group", None)
    if group is not None:
        made.add_typer(group, name=noun)
        return
    function = getattr(module, noun)
    if inspect.iscoroutinefunction(function):
        command(made, *module.EXAMPLES, name=noun)(function)
    else:
        made.command(noun, epilog=examples(*module.EXAMPLES))(function)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
