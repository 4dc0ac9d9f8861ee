"""`tidings lists`: lists of contacts, with members or a saved filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .contacts import parse_stripped, print_page
from .options import After, Limit, argument, channel_option, option
from .output import Column

group = typer.Typer(help="Manage lists of contacts and saved filters.", no_args_is_help=True)

List = Annotated[str, argument("LIST", "List name or id.", complete=shell_completion.lists)]
Contacts = Annotated[list[str], argument("ID", "Contact ids.")]


@dataclass(frozen=True)
class FilterOptions:
    """The conditions of a saved filter."""

    tag: Annotated[
        list[str] | None, option("--tag", "-t", "TAG", "Contacts with this tag. Repeatable; all must match.")
    ] = None
    any_tag: Annotated[list[str] | None, option("TAG", "Contacts with at least one of these tags. Repeatable.")] = None
    no_tag: Annotated[list[str] | None, option("TAG", "Contacts without this tag. Repeatable.")] = None
    language: Annotated[str | None, option("CODE", "Contacts with this language.")] = None
    timezone: Annotated[str | None, option("NAME", "Contacts in this time zone.")] = None
    channel: Annotated[str | None, channel_option("Contacts with an address on this channel.")] = None
    attribute: Annotated[
        list[str] | None, option("--attribute", "NAME=VALUE", "Contacts whose attribute has this value. Repeatable.")
    ] = None

    def body(self) -> dict[str, Any] | None:
        """Return the filter, or None if no condition is given."""
        conditions = {
            "tags_all": self.tag,
            "tags_any": self.any_tag,
            "tags_none": self.no_tag,
            "language": self.language,
            "timezone": self.timezone,
            "channel": self.channel,
            "attributes": parse_stripped(self.attribute, "--attribute"),
        }
        return conditions if any(conditions.values()) else None


@command(group, "tidings lists add volunteers", "tidings lists add berlin --timezone Europe/Berlin --tag donor")
async def add(
    ctx: CommandContext, name: Annotated[str, argument("NAME", "Name of the new list.")], *, filter_: FilterOptions
) -> None:
    """Create a list. With a filter, its members are the matching contacts at the time of use."""
    body = {"name": name, "filter": filter_.body()}
    _say(ctx, (await ctx.outbound.audience.create(body)).answer, "added")


@command(group, "tidings lists edit berlin --name capital --timezone Europe/Berlin")
async def edit(
    ctx: CommandContext,
    list_: List,
    *,
    name: Annotated[str | None, option("NAME", "New name.")] = None,
    filter_: FilterOptions,
) -> None:
    """Rename a list, or replace its filter."""
    body = {"name": name, "filter": filter_.body()}
    _say(ctx, await ctx.outbound.audience.edit(list_, body), "changed")


@command(group, "tidings lists list", name="list")
async def list_all(ctx: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """List the lists by name."""
    page = await ctx.outbound.audience.page(limit=limit, after=after)
    columns = Column.plain("name:keep", "members:right", "filter", "id:keep,spare")
    nothing = "no lists yet; see: tidings lists add --help"
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, "tidings lists show volunteers")
async def show(ctx: CommandContext, list_: List) -> None:
    """Show a list."""
    row = await ctx.outbound.audience.show(list_)
    ctx.answer(row, lambda: output.facts(output.fields(row)))


@command(group, "tidings lists members volunteers", "tidings lists members volunteers > members.tsv")
async def members(ctx: CommandContext, list_: List, *, limit: Limit = 20, after: After = None) -> None:
    """List the members, or the contacts that match the filter now."""
    page = await ctx.outbound.audience.members(list_, limit=limit, after=after)
    print_page(ctx, page, nothing="no contacts")


@command(group, "tidings lists join volunteers ID ID")
async def join(ctx: CommandContext, list_: List, contacts: Contacts) -> None:
    """Add contacts to a list."""
    _count(ctx, "added", await ctx.outbound.audience.add(list_, contacts))


@command(group, "tidings lists leave volunteers ID")
async def leave(ctx: CommandContext, list_: List, contacts: Contacts) -> None:
    """Remove contacts from a list."""
    _count(ctx, "removed", await ctx.outbound.audience.drop(list_, contacts))


@command(group, "tidings lists remove volunteers")
async def remove(ctx: CommandContext, list_: List) -> None:
    """Delete a list. Its contacts stay."""
    row = await ctx.outbound.audience.show(list_)
    await ctx.outbound.audience.remove(row["id"])
    _say(ctx, row, "deleted")


def _say(ctx: CommandContext, row: output.Row, verb: str) -> None:
    ctx.answer(row, lambda: output.say((row["name"], "bold"), f" {verb} ({row['id']})"))


def _count(ctx: CommandContext, verb: str, n: int) -> None:
    ctx.answer({verb: n}, lambda: output.say(f"{n:,} {verb}"))
