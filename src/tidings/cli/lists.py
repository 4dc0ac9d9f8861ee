"""`tidings lists`: contacts that belong together, by name or by a saved filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .contacts import listed, pairs
from .help import examples
from .options import After, Limit, argument, channel_option, option
from .output import Column

group = typer.Typer(help="Lists: contacts that belong together, and saved filters.", no_args_is_help=True)

List = Annotated[str, argument("LIST", "The list's name or id.", complete=shell_completion.lists)]
Contacts = Annotated[list[str], argument("ID", "Ids of contacts.")]


@dataclass(frozen=True)
class FilterOptions:
    """Which contacts a saved filter finds."""

    tag: Annotated[list[str] | None, option("--tag", "-t", "WORD", "Those with all of these tags.")] = None
    any_tag: Annotated[
        list[str] | None, option("--any-tag", "WORD", "Those with at least one of these tags.")
    ] = None
    no_tag: Annotated[list[str] | None, option("--no-tag", "WORD", "Those with none of these tags.")] = None
    language: Annotated[str | None, option("--language", "CODE", "Those of this language.")] = None
    timezone: Annotated[str | None, option("--timezone", "NAME", "Those in this time zone.")] = None
    channel: Annotated[str | None, channel_option("Those with an address on this channel.")] = None
    attribute: Annotated[
        list[str] | None, option("--attribute", "NAME=VALUE", "Those whose attribute has this value.")
    ] = None

    def body(self) -> dict[str, Any] | None:
        """The filter as it is kept; None unless something is given."""
        said = {
            "tags_all": self.tag,
            "tags_any": self.any_tag,
            "tags_none": self.no_tag,
            "language": self.language,
            "timezone": self.timezone,
            "channel": self.channel,
            "attributes": pairs(self.attribute or [], "--attribute"),
        }
        return said if any(said.values()) else None


@command(
    group,
    epilog=examples(
        "tidings lists add volunteers", "tidings lists add berlin --timezone Europe/Berlin --tag donor"
    ),
)
async def add(
    ask: CommandContext,
    name: Annotated[str, argument("NAME", "What it is called.")],
    *,
    filter_: FilterOptions,
) -> None:
    """A new list. With any filter it has no members of its own: it finds them anew each time."""
    body = {"name": name, "filter": filter_.body()}
    _say(ask, (await ask.desk.audience.create(body)).answer, "added")


@command(group, epilog=examples("tidings lists edit berlin --name capital --timezone Europe/Berlin"))
async def edit(
    ask: CommandContext,
    list_: List,
    *,
    name: Annotated[str | None, option("--name", "NAME", "Another name.")] = None,
    filter_: FilterOptions,
) -> None:
    """Another name, or another filter in place of the one it has."""
    body = {"name": name, "filter": filter_.body()}
    _say(ask, await ask.desk.audience.edit(list_, body), "changed")


@command(group, "list", epilog=examples("tidings lists list"))
async def list_all(
    ask: CommandContext,
    *,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Lists, by name."""
    page = await ask.desk.audience.page(limit=limit, after=after)
    columns = [
        Column("name", lambda row: row["name"], keep=True),
        Column("members", lambda row: row["members"], right=True),
        Column("filter", lambda row: row["filter"]),
        Column("id", lambda row: row["id"], keep=True, spare=True),
    ]
    nothing = "no lists yet; see: tidings lists add --help"
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, epilog=examples("tidings lists show volunteers"))
async def show(ask: CommandContext, list_: List) -> None:
    """One list."""
    row = await ask.desk.audience.show(list_)
    ask.answer(row, lambda: output.facts(output.fields(row)))


@command(
    group,
    epilog=examples("tidings lists members volunteers", "tidings lists members volunteers > members.tsv"),
)
async def members(
    ask: CommandContext,
    list_: List,
    *,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Who is on it, or whom its filter finds now."""
    page = await ask.desk.audience.members(list_, limit=limit, after=after)
    listed(ask, page, nothing="nobody")


@command(group, epilog=examples("tidings lists join volunteers ID ID"))
async def join(
    ask: CommandContext,
    list_: List,
    contacts: Contacts,
) -> None:
    """Put contacts on a list."""
    _count(ask, "added", await ask.desk.audience.add(list_, contacts))


@command(group, epilog=examples("tidings lists leave volunteers ID"))
async def leave(
    ask: CommandContext,
    list_: List,
    contacts: Contacts,
) -> None:
    """Take contacts off a list."""
    _count(ask, "removed", await ask.desk.audience.drop(list_, contacts))


@command(group, epilog=examples("tidings lists remove volunteers"))
async def remove(ask: CommandContext, list_: List) -> None:
    """Forget a list; the contacts stay."""
    row = await ask.desk.audience.show(list_)
    await ask.desk.audience.remove(row["id"])
    _say(ask, row, "removed")


def _say(ask: CommandContext, row: output.Row, verb: str) -> None:
    ask.answer(row, lambda: output.say((row["name"], "bold"), f" {verb} ({row['id']})"))


def _count(ask: CommandContext, verb: str, n: int) -> None:
    ask.answer({verb: n}, lambda: output.say(f"{n:,} {verb}"))
