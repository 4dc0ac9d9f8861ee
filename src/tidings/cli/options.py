"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import completing


def channel_option(help_: str) -> Any:
    """`--channel`, completed from the configured ones."""
    return typer.Option("--channel", "-c", metavar="NAME", help=help_, autocompletion=completing.channels)


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings to read; without it ./tidings.toml, if there is one."
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="URL",
        help="sqlite:///path/to/file or postgresql://user@host/name; without it as configured.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MessageId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The message's id.", show_default=False, autocompletion=completing.messages
    ),
]
OfChannel = Annotated[str | None, channel_option("Only of this channel.")]
OfRecipient = Annotated[str | None, typer.Option("--to", metavar="WHO", help="Only to this recipient.")]
InDoubt = Annotated[
    bool | None,
    typer.Option("--in-doubt/--certain", help="Only those that may have gone out, or only the others."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="At most so many, 1 to 1000.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="PLACE", help="Go on where the page before ended.")
]
