"""`tidings nodes`: the processes that work, and how busy they are."""

from __future__ import annotations

from typing import Any

import typer

from . import engine, output
from .options import AsJson, ConfigFile, Database
from .output import Column, Row

group = typer.Typer(help="The processes that work.", no_args_is_help=True)


@group.command("list")
def list_(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Every process that works, or died and may still hold messages."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            now = app.clock.now()
            rows = [_described(node) for node in await app.store.read("node_list")]
            columns = [
                Column("id", lambda row: row["id"], right=True),
                Column("name", lambda row: row["name"], keep=True),
                Column("state", lambda row: row["state"]),
                Column(
                    "started", lambda row: row["started_at"], lambda row: output.away(row["started_at"], now)
                ),
                Column("last beat", lambda row: row["seen_at"], lambda row: output.away(row["seen_at"], now)),
                Column("at work", lambda row: row["in_flight"], right=True),
                Column("slots", lambda row: row["slots"], right=True),
            ]
            nothing = "no process is working; start one with: tidings serve"
            output.listing(rows, columns, as_json=as_json, nothing=nothing)

    engine.run(work())


def _described(node: Row) -> Row:
    import orjson

    from ..model.time import iso

    info: dict[str, Any] = orjson.loads(node["info"])
    return {
        "id": node["id"],
        "name": node["name"],
        "state": node["state"],
        "started_at": iso(node["started_at"]),
        "seen_at": iso(node["seen_at"]),
        "in_flight": info.get("in_flight"),
        "slots": info.get("slots"),
    }
