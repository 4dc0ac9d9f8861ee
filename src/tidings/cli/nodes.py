"""`tidings nodes`: the processes of the engine and their load."""

from __future__ import annotations

import typer

from .commands import CommandContext, command
from .output import Column

group = typer.Typer(help="List the processes of the engine.", no_args_is_help=True)


@command(group, "tidings nodes list", "tidings nodes list --json", name="list")
async def list_(ctx: CommandContext) -> None:
    """List live processes, and dead ones whose messages are not yet recovered."""
    columns = [
        *Column.plain("id:right", "name:keep", "state", "started=started_at:time,spare", "last heartbeat=seen_at:time"),
        Column("in flight", lambda row: row["load"].get("in_flight"), right=True),
        Column("concurrency", lambda row: row["load"].get("concurrency"), right=True),
        Column("cpu", lambda row: row["load"].get("cpu"), lambda row: f"{row['load'].get('cpu', 0):.0%}", right=True),
        Column("p95 ms", lambda row: row["load"].get("durations_ms", {}).get("p95"), right=True, spare=True),
        Column("broker", lambda row: row["load"].get("broker"), spare=True),
    ]
    nothing = "no engine is running; start one with: tidings serve"
    ctx.listing(await ctx.outbound.overview.nodes(), columns, nothing=nothing)
