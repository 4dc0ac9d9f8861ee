"""`tidings channels`: the ways out, how they stand, pause and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import engine, output
from .options import AsJson, ConfigFile, Database
from .output import Column, Row

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from ..app import App

group = typer.Typer(help="The ways out: how they stand, pause, resume.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The channel's name.", show_default=False)]


@group.command("list")
def list_(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Every channel, and whether it sends."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            now = app.clock.now()
            rows = [_described(app, queue, now) for queue in await app.store.read("queue_list")]
            columns = [
                Column("name", lambda row: row["name"], keep=True),
                Column("kind", lambda row: row["kind"], lambda row: row["kind"] or "(not configured here)"),
                Column("standing", lambda row: row["standing"], _standing),
                Column("until", lambda row: row["until"], lambda row: output.away(row["until"], now)),
                Column("per second", lambda row: row["per_second"], right=True),
                Column("in doubt", lambda row: row["on_unknown"]),
                Column("reason", lambda row: row["reason"]),
            ]
            output.listing(rows, columns, as_json=as_json, nothing="no channels")

    engine.run(work())


@group.command(epilog='Example: tidings channels pause phone --reason "the provider is down"')
def pause(
    name: Name,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Shown wherever somebody asks why.")
    ] = "paused by hand",
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Start nothing more on a channel. Its messages wait and spend no attempt."""
    _change(config, database, name, "queue_pause", {"reason": reason}, "paused", as_json=as_json)


@group.command()
def resume(name: Name, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Let a channel send again: lifts a pause, a wait and an open breaker."""
    _change(config, database, name, "queue_resume", {}, "sends again", as_json=as_json)


def _change(
    config: Path | None,
    database: str | None,
    name: str,
    statement: str,
    more: Row,
    done: str,
    *,
    as_json: bool,
) -> None:
    async def work() -> None:
        from ..model.errors import NotFound
        from ..store.port import Step

        async with engine.opened(engine.settings(config, database)) as app:
            if not (await app.store.write([Step(statement, {"name": name, **more})]))[0]:
                known = ", ".join(row["name"] for row in await app.store.read("queue_list"))
                raise NotFound(
                    f"there is no channel {name!r}", remedy=f"known channels: {known}", field="name"
                )
            await app.store.hint()
            now = app.clock.now()
            row = next(row for row in await app.store.read("queue_list") if row["name"] == name)
            if as_json:
                output.say_json(_described(app, row, now))
            else:
                output.say((name, "bold"), f" {done}")

    engine.run(work())


def _described(app: App, queue: Row, now: int) -> Row:
    """A channel as people see it."""
    from ..diagnosis import standing
    from ..model.time import SECOND, iso

    stands = standing(queue, now)
    channel = app.settings.channels.get(queue["name"])
    return {
        "name": queue["name"],
        "kind": channel.kind if channel else None,
        "standing": stands.word,
        "reason": stands.reason,
        "until": iso(stands.until),
        "per_second": round(SECOND / queue["interval"], 3) if queue["interval"] else None,
        "on_unknown": queue["on_unknown"],
        "policy": app.lanes[queue["name"]].policy.name if queue["name"] in app.lanes else None,
    }


def _standing(row: Row) -> Text:
    from rich.text import Text

    return Text(row["standing"], "green" if row["standing"] == "ready" else "yellow")
