"""`tidings lists`: contacts that belong together, by name or by a saved filter."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import engine, output
from .contacts import listed, pairs
from .help import examples
from .options import After, AsJson, ConfigFile, Database, Limit
from .output import Column

group = typer.Typer(help="Lists: contacts that belong together, and saved filters.", no_args_is_help=True)

List = Annotated[str, typer.Argument(metavar="LIST", help="The list's name or id.", show_default=False)]
Contacts = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of contacts.", show_default=False)]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", metavar="WORD", help="Those with all of these tags.")
]
AnyTags = Annotated[
    list[str] | None, typer.Option("--any-tag", metavar="WORD", help="Those with at least one of these tags.")
]
NoTags = Annotated[
    list[str] | None, typer.Option("--no-tag", metavar="WORD", help="Those with none of these tags.")
]
Language = Annotated[str | None, typer.Option("--language", metavar="CODE", help="Those of this language.")]
Zone = Annotated[str | None, typer.Option("--zone", metavar="NAME", help="Those in this time zone.")]
Channel = Annotated[
    str | None, typer.Option("--channel", "-c", metavar="NAME", help="Those with an address on this channel.")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="Those whose attribute has this value."),
]


@group.command(
    epilog=examples(
        "tidings lists add volunteers", "tidings lists add berlin --zone Europe/Berlin --tag donor"
    )
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.", show_default=False)],
    *,
    tag: Tags = None,
    any_tag: AnyTags = None,
    no_tag: NoTags = None,
    language: Language = None,
    zone: Zone = None,
    channel: Channel = None,
    attribute: Attributes = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """A new list. With any filter it has no members of its own: it finds them anew each time."""
    body = {"name": name, "filter": _filter(tag, any_tag, no_tag, language, zone, channel, attribute)}

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _say((await desk.audience.create(body)).answer, "added", as_json=as_json)

    engine.run(work())


@group.command(epilog=examples("tidings lists edit berlin --name capital --zone Europe/Berlin"))
def edit(
    list_: List,
    *,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Another name.")] = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    no_tag: NoTags = None,
    language: Language = None,
    zone: Zone = None,
    channel: Channel = None,
    attribute: Attributes = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Another name, or another filter in place of the one it has."""
    body = {"name": name, "filter": _filter(tag, any_tag, no_tag, language, zone, channel, attribute)}

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _say(await desk.audience.edit(list_, body), "changed", as_json=as_json)

    engine.run(work())


@group.command("list")
def list_all(
    *,
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Lists, by name."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            page = await desk.audience.page(limit=limit, after=after)
        columns = [
            Column("name", lambda row: row["name"], keep=True),
            Column("members", lambda row: row["members"], right=True),
            Column("filter", lambda row: row["filter"]),
            Column("id", lambda row: row["id"], keep=True, spare=True),
        ]
        nothing = "no lists yet; see: tidings lists add --help"
        output.listing(page.items, columns, as_json=as_json, more=page.next, nothing=nothing)

    engine.run(work())


@group.command()
def show(
    list_: List, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None
) -> None:
    """One list."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            row = await desk.audience.show(list_)
        if as_json:
            output.say_json(row)
        else:
            output.facts([(name.replace("_", " "), value, None) for name, value in row.items()])

    engine.run(work())


@group.command()
def members(
    list_: List,
    *,
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Who is on it, or whom its filter finds now."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            page = await desk.audience.members(list_, limit=limit, after=after)
        listed(page.items, page.next, as_json=as_json, nothing="nobody")

    engine.run(work())


@group.command()
def join(
    list_: List,
    contacts: Contacts,
    *,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Put contacts on a list."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _count("added", await desk.audience.add(list_, contacts), as_json=as_json)

    engine.run(work())


@group.command()
def leave(
    list_: List,
    contacts: Contacts,
    *,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Take contacts off a list."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            _count("removed", await desk.audience.drop(list_, contacts), as_json=as_json)

    engine.run(work())


@group.command()
def remove(
    list_: List, *, as_json: AsJson = False, database: Database = None, config: ConfigFile = None
) -> None:
    """Forget a list; the contacts stay."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as (_, desk):
            row = await desk.audience.show(list_)
            await desk.audience.remove(row["id"])
            _say(row, "removed", as_json=as_json)

    engine.run(work())


def _filter(
    tag: list[str] | None,
    any_tag: list[str] | None,
    no_tag: list[str] | None,
    language: str | None,
    zone: str | None,
    channel: str | None,
    attribute: list[str] | None,
) -> dict[str, Any] | None:
    said = {
        "tags_all": tag,
        "tags_any": any_tag,
        "tags_none": no_tag,
        "language": language,
        "zone": zone,
        "channel": channel,
        "attributes": pairs(attribute or [], "--attribute"),
    }
    return said if any(said.values()) else None


def _say(row: output.Row, verb: str, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
    else:
        output.say((row["name"], "bold"), f" {verb} ({row['id']})")


def _count(verb: str, n: int, *, as_json: bool) -> None:
    if as_json:
        output.say_json({verb: n})
    else:
        output.say(f"{n:,} {verb}")
