"""Options and arguments that several commands share, and parsers for their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from . import shell_completion


def option(*words: str, complete: Callable[..., Any] | None = None, show_default: bool = True) -> Any:
    """Declare an option with a value: the flags, the metavar, the help text."""
    *flags, metavar, help_ = words
    return typer.Option(*flags, metavar=metavar, help=help_, autocompletion=complete, show_default=show_default)


def argument(metavar: str, help_: str, *, complete: Callable[..., Any] | None = None) -> Any:
    """Declare an argument. Its default is never shown."""
    return typer.Argument(metavar=metavar, help=help_, show_default=False, autocompletion=complete)


def channel_option(help_: str) -> Any:
    """Declare `--channel`, completed from the configured channels."""
    return option("--channel", "-c", "NAME", help_, complete=shell_completion.channels)


ConfigFile = Annotated[Path | None, option("--config", "FILE", "Settings file. [./tidings.toml, if it exists]")]
Database = Annotated[
    str | None, option("--database", "-d", "URL", "sqlite:///path or postgresql://user@host/name. [from settings]")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MessageId = Annotated[str, argument("ID", "Message id.", complete=shell_completion.messages)]
OfChannel = Annotated[str | None, channel_option("Filter by channel.")]
OfRecipient = Annotated[str | None, option("--to", "RECIPIENT", "Filter by recipient.")]
Uncertain = Annotated[
    bool | None,
    typer.Option("--uncertain/--certain", help="Only messages whose delivery is uncertain, or only the others."),
]
Limit = Annotated[int, option("--limit", "-n", "N", "Maximum number of rows, 1 to 1000.")]
After = Annotated[str | None, option("--after", "CURSOR", "Continue after the previous page.")]
At = Annotated[str | None, option("--at", "WHEN", "Time: ISO 8601 with offset, or words like 'tomorrow 9am'.")]
In = Annotated[str | None, option("--in", "DURATION", "Delay from now, such as 10s, 5m or 2h.")]
Past = Annotated[
    str | None, option("--past", "send|refuse", "What to do with a time more than 5 minutes ago. [refuse]")
]
Key = Annotated[str | None, option("--key", "KEY", "Idempotency key: repeating the call has no effect.")]
Var = Annotated[list[str] | None, option("--var", "NAME=VALUE", "Template variable as NAME=VALUE. Repeatable.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen without writing anything.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
InputFile = Annotated[str, typer.Argument(metavar="FILE", help="CSV or NDJSON file, or - to read from stdin.")]
InputFormat = Annotated[str | None, option("--format", "csv|ndjson", "File format. [from the file name]")]
TimesZone = Annotated[
    str | None, option("--timezone", "NAME", "Time zone for times without one, such as Asia/Kathmandu.")
]


def parse_json(text: str | None, name: str, *, is_object: bool = False) -> Any:
    """Parse the JSON value of an option or a file; None stays None. Raises Invalid."""
    if text is None:
        return None
    import orjson

    from ..model.errors import Invalid

    field, remedy = name.strip("-"), """write it as '{"name": "value"}'"""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"{name} is not JSON ({error})", remedy=remedy, field=field) from None
    if is_object and not isinstance(found, dict):
        raise Invalid(f"{name} is not a JSON object", remedy=remedy, field=field)
    return found


def parse_pairs(given: Sequence[str] | None, name: str) -> dict[str, str]:
    """Parse repeated NAME=VALUE options into a dict. Raises Invalid."""
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            from ..model.errors import Invalid

            problem = f"{name} {text!r} is not NAME=VALUE"
            raise Invalid(problem, field=name.strip("-"), remedy=f"write {name} NAME=VALUE")
        found[key.strip()] = value
    return found


def drop_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}
