"""`tidings nodes`: the processes that work, and how busy they are."""

from __future__ import annotations

import typer

from .commands import CommandContext, command
from .help import examples
from .output import Column

group = typer.Typer(help="The processes that work.", no_args_is_help=True)


@command(group, "list", epilog=examples("tidings nodes list", "tidings nodes list --json"))
async def list_(ask: CommandContext) -> None:
    """Every process that works, or died and may still hold messages."""
    now = ask.app.clock.now()
    columns = [
        Column("id", lambda row: row["id"], right=True),
        Column("name", lambda row: row["name"], keep=True),
        Column("state", lambda row: row["state"]),
        Column.time("started", "started_at", now, spare=True),
        Column.time("last beat", "seen_at", now),
        Column("at work", lambda row: row["load"].get("in_flight"), right=True),
        Column("slots", lambda row: row["load"].get("slots"), right=True),
        Column("broker", lambda row: row["load"].get("broker"), spare=True),
    ]
    nothing = "no process is working; start one with: tidings serve"
    ask.listing(await ask.desk.overview.nodes(), columns, nothing=nothing)
