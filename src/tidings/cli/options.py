"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from . import shell_completion


def option(*words: str, complete: Callable[..., Any] | None = None, show_default: bool = True) -> Any:
    """An option with a value, in the order of its help line: the flags, the metavar, the help."""
    *flags, metavar, help_ = words
    return typer.Option(
        *flags, metavar=metavar, help=help_, autocompletion=complete, show_default=show_default
    )


def argument(metavar: str, help_: str, *, complete: Callable[..., Any] | None = None) -> Any:
    """An argument, in the order of its help line; never with its default."""
    return typer.Argument(metavar=metavar, help=help_, show_default=False, autocompletion=complete)


def channel_option(help_: str) -> Any:
    """`--channel`, completed from the configured ones."""
    return option("--channel", "-c", "NAME", help_, complete=shell_completion.channels)


ConfigFile = Annotated[
    Path | None, option("--config", "FILE", "Settings to read; without it ./tidings.toml, if there is one.")
]
Database = Annotated[
    str | None,
    option(
        "--database",
        "-d",
        "URL",
        "sqlite:///path/to/file or postgresql://user@host/name; without it as configured.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MessageId = Annotated[str, argument("ID", "The message's id.", complete=shell_completion.messages)]
OfChannel = Annotated[str | None, channel_option("Only of this channel.")]
OfRecipient = Annotated[str | None, option("--to", "WHO", "Only to this recipient.")]
InDoubt = Annotated[
    bool | None,
    typer.Option("--uncertain/--certain", help="Only those that may have gone out, or only the others."),
]
Limit = Annotated[int, option("--limit", "-n", "N", "At most so many, 1 to 1000.")]
After = Annotated[str | None, option("--after", "PLACE", "Go on where the page before ended.")]
