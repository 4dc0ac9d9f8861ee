"""`tidings nodes`: the processes that work, and how busy they are."""

from __future__ import annotations

import typer

from . import engine, output
from .options import AsJson, ConfigFile, Database
from .output import Column

group = typer.Typer(help="The processes that work.", no_args_is_help=True)


@group.command("list")
def list_(*, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Every process that works, or died and may still hold messages."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (app, desk):
            now = app.clock.now()
            columns = [
                Column("id", lambda row: row["id"], right=True),
                Column("name", lambda row: row["name"], keep=True),
                Column("state", lambda row: row["state"]),
                Column(
                    "started",
                    lambda row: row["started_at"],
                    lambda row: output.away(row["started_at"], now),
                    spare=True,
                ),
                Column("last beat", lambda row: row["seen_at"], lambda row: output.away(row["seen_at"], now)),
                Column("at work", lambda row: row["load"].get("in_flight"), right=True),
                Column("slots", lambda row: row["load"].get("slots"), right=True),
            ]
            nothing = "no process is working; start one with: tidings serve"
            output.listing(await desk.overview.nodes(), columns, as_json=as_json, nothing=nothing)

    engine.run(work())
