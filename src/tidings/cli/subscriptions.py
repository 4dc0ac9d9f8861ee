"""`tidings subscriptions`: who is told of what happens, by signed webhooks."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine, output
from .help import examples
from .options import After, AsJson, ConfigFile, Database, Limit
from .output import Column, Row

group = typer.Typer(help="Events out: who is told of what, by signed webhooks.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="The subscription's id.", show_default=False)]
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--events", "-e", metavar="TYPE", help="message.sent, message.*, * …; may be given several times."
    ),
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Where events are posted.")]


@group.command(
    epilog=examples(
        "tidings subscriptions add --url https://example.com/hooks -e 'message.*' -e broadcast.completed"
    )
)
def add(
    *,
    url: Url = None,
    events: Events = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Makes it safe to repeat the command.")
    ] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Subscribe. The secret that signs events is shown this once."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            made = await desk.subscriptions.add({"url": url, "events": events or None}, key=key)
            _with_secret(made.answer, as_json=as_json)

    engine.run(work())


@group.command("list")
def list_(
    *,
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Subscriptions, newest first, and what is wrong with their receivers."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            page = await desk.subscriptions.page(limit=limit, after=after)
            columns = [
                Column("id", lambda row: row["id"], keep=True),
                Column("state", _state),
                Column("events", lambda row: ",".join(row["events"])),
                Column("url", lambda row: row["url"], keep=True),
                Column("problem", lambda row: row["problem"]),
            ]
            nothing = "no subscriptions yet; see: tidings subscriptions add --help"
            output.listing(page.items, columns, as_json=as_json, more=page.next, nothing=nothing)

    engine.run(work())


@group.command()
def show(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """One subscription."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (app, desk):
            row = await desk.subscriptions.show(id_)
            if as_json:
                output.say_json(row)
                return
            zone, now = app.settings.zone, app.clock.now()
            output.facts(
                [
                    ("id", row["id"], None),
                    ("state", _state(row), None),
                    ("url", row["url"], None),
                    ("events", ", ".join(row["events"]), None),
                    ("problem", row["problem"], None),
                    ("failing since", row["failing_since"], output.full(row["failing_since"], zone, now)),
                    ("created", row["created_at"], output.full(row["created_at"], zone, now)),
                    ("changed", row["changed_at"], output.full(row["changed_at"], zone, now)),
                ]
            )

    engine.run(work())


@group.command(epilog=examples("tidings subscriptions edit ID -e 'message.failed' -e 'message.expired'"))
def edit(
    id_: Id,
    *,
    url: Url = None,
    events: Events = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Another address, or other events."""
    _edit(id_, {"url": url, "events": events or None}, "changed", as_json, database, config)


@group.command()
def pause(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Tell it nothing for now; what happens meanwhile is not told later."""
    _edit(id_, {"active": False}, "is told nothing for now", as_json, database, config)


@group.command()
def resume(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Tell it again, also one that was given up because its receiver failed for days."""
    _edit(id_, {"active": True}, "is told again", as_json, database, config)


@group.command()
def rotate(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """A new secret, shown this once. For a day events are signed with both."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _with_secret(await desk.subscriptions.rotate(id_), as_json=as_json)

    engine.run(work())


@group.command()
def test(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Send it the event subscription.test."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            row = await desk.subscriptions.test(id_)
        _answer(row, "will get the event subscription.test", as_json=as_json)

    engine.run(work())


@group.command()
def remove(id_: Id, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Tell it nothing any more."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            await desk.subscriptions.remove(id_)
        _answer({"id": id_, "removed": True}, "removed", as_json=as_json)

    engine.run(work())


def _edit(id_: str, change: Row, text: str, as_json: bool, database: str | None, config: ConfigFile) -> None:
    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _answer(await desk.subscriptions.edit(id_, dict(change)), text, as_json=as_json)

    engine.run(work())


def _with_secret(row: Row, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
        return
    output.facts([("id", row["id"], None), ("url", row["url"], None), ("secret", row["secret"], None)])
    if output.on_terminal():
        output.say(("keep the secret now: it is not shown again", "yellow"))


def _answer(row: Row, text: str, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
    else:
        output.say((row["id"], "bold"), f" {text}")


def _state(row: Row) -> str:
    if not row["active"]:
        return "off"
    return "failing" if row["failing_since"] else "on"
