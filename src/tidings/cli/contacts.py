"""`tidings contacts`: recipients with their addresses, tags and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import (
    After,
    AsJson,
    ConfigFile,
    Database,
    DryRun,
    InputFile,
    InputFormat,
    Limit,
    argument,
    channel_option,
    option,
    parse_pairs,
)
from .output import Column

if TYPE_CHECKING:
    from ..config import Settings
    from ..inputs.pagination import Page

group = typer.Typer(help="Manage contacts and their addresses.", no_args_is_help=True)

Contact = Annotated[str, argument("ID", "Contact id.")]


@dataclass(frozen=True)
class ContactOptions:
    """The fields of a contact."""

    name: Annotated[str | None, option("TEXT", "Display name.")] = None
    address: Annotated[
        list[str] | None,
        option("--address", "-a", "CHANNEL=ADDRESS", "Address on a channel; an empty one removes it. Repeatable."),
    ] = None
    timezone: Annotated[str | None, option("NAME", "Time zone, such as Europe/Berlin.")] = None
    language: Annotated[str | None, option("CODE", "Language, such as de or pt-BR.")] = None
    tag: Annotated[list[str] | None, option("--tag", "-t", "TAG", "Tag. Repeatable.")] = None
    attribute: Annotated[
        list[str] | None, option("--attribute", "NAME=VALUE", "Attribute; an empty value removes it. Repeatable.")
    ] = None

    def body(self) -> dict[str, Any]:
        """Return the fields for the API."""
        return {
            "name": self.name,
            "addresses": parse_stripped(self.address, "--address"),
            "timezone": self.timezone,
            "language": self.language,
            "tags": None if self.tag is None else [tag for tag in self.tag if tag],
            "attributes": parse_stripped(self.attribute, "--attribute"),
        }


@command(group, "tidings contacts add --name Ada --address phone=ada --timezone Europe/Berlin --tag volunteer")
async def add(
    ctx: CommandContext,
    *,
    details: ContactOptions,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Update the contact that has one of the addresses, if any.")
    ] = False,
) -> None:
    """Add a contact."""
    body = details.body()
    if upsert:
        row, is_new = await ctx.outbound.contacts.put(body)
    else:
        row, is_new = (await ctx.outbound.contacts.create(body)).answer, True
    ctx.done(row, "added" if is_new else "changed")


@command(group, "tidings contacts edit ID --timezone Asia/Tokyo --attribute city=Tokyo")
async def edit(ctx: CommandContext, contact: Contact, *, details: ContactOptions) -> None:
    """Update the given fields of a contact. An empty value removes a field; tags are replaced."""
    ctx.done(await ctx.outbound.contacts.edit(contact, details.body()), "changed")


@command(group, "tidings contacts list --tag volunteer --language de", name="list")
async def list_(
    ctx: CommandContext,
    *,
    tag: Annotated[list[str] | None, option("--tag", "-t", "TAG", "Filter by tag. Repeatable; all must match.")] = None,
    language: Annotated[str | None, option("CODE", "Filter by language.")] = None,
    timezone: Annotated[str | None, option("NAME", "Filter by time zone.")] = None,
    channel: Annotated[str | None, channel_option("Only contacts with an address on this channel.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List contacts, newest first."""
    from ..outbound.contacts.contact_filters import read_filter

    filters = {"tags_all": tag or None, "language": language, "timezone": timezone, "channel": channel}
    wanted = read_filter(filters, ctx.outbound.contacts.channels) if any(filters.values()) else None
    page = await ctx.outbound.contacts.page(wanted, limit=limit, after=after)
    print_page(ctx, page, nothing="no contacts")


@command(group, "tidings contacts show ID")
async def show(ctx: CommandContext, contact: Contact) -> None:
    """Show a contact."""
    _print(ctx, await ctx.outbound.contacts.show(contact))


@command(group, "tidings contacts find phone ada")
async def find(
    ctx: CommandContext,
    channel: Annotated[str, argument("CHANNEL", "Channel of the address.", complete=shell_completion.channels)],
    address: Annotated[str, argument("ADDRESS", "Address to look up.")],
) -> None:
    """Find the contact that has an address."""
    from ..model.errors import NotFound

    row = await ctx.outbound.contacts.at(channel, address)
    if row is None:
        raise NotFound(
            f"no contact has the address {address!r} on {channel}", remedy="check the address and the channel"
        )
    _print(ctx, row)


@command(group, "tidings contacts remove ID")
async def remove(ctx: CommandContext, contact: Contact) -> None:
    """Delete a contact. Opt-outs of its addresses stay in effect."""
    await ctx.outbound.contacts.remove(contact)
    ctx.done({"id": contact}, "deleted")


@group.command(
    "import",
    epilog=examples(
        "tidings contacts import people.csv --list volunteers",
        "tidings contacts import people.csv --map address.phone=mobile --map name=full_name --dry-run",
    ),
)
def import_(
    file: InputFile,
    *,
    format_: InputFormat = None,
    channel: Annotated[str | None, channel_option("Channel of a column named `address`.")] = None,
    map_: Annotated[
        list[str] | None, option("--map", "FIELD=COLUMN", "Column of a field that has another name. Repeatable.")
    ] = None,
    tag: Annotated[list[str] | None, option("--tag", "-t", "TAG", "Add this tag to every contact. Repeatable.")] = None,
    list_: Annotated[
        str | None, option("--list", "LIST", "Add every contact to this list.", complete=shell_completion.lists)
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="Import nothing if a row is invalid.")
    ] = False,
    dry_run: DryRun = False,
    report: Annotated[Path | None, option("FILE", "Write the invalid rows to FILE as CSV.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Import contacts from a file. Existing contacts are found by address and updated.

    Columns: name, timezone, language, tags (a;b or a|b) and address.CHANNEL; others are attributes.
    Empty cells change nothing; tags are added. Invalid rows are reported and skipped.
    """
    from .contact_imports import import_contacts

    options = {"channel": channel, "names": map_ or [], "tags": tag or [], "list_": list_}
    chosen: Settings = engine.settings(config, database)
    code = engine.run(
        import_contacts(
            chosen,
            file,
            format_,
            options,
            all_or_nothing=all_or_nothing,
            dry_run=dry_run,
            report=report,
            as_json=as_json,
        )
    )
    if code:
        raise typer.Exit(code)


def print_page(ctx: CommandContext, page: Page, *, nothing: str) -> None:
    """Print a page of contacts."""
    columns = [
        *Column.plain("id:keep", "name"),
        Column("addresses", lambda row: " ".join(f"{c}={a}" for c, a in row["addresses"].items())),
        *Column.plain("timezone:spare", "language:spare"),
        Column("tags", lambda row: " ".join(row["tags"])),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


def _print(ctx: CommandContext, row: output.Row) -> None:
    several = {"addresses": row["addresses"], "attributes": row["attributes"]}
    lines = {name: ", ".join(f"{n}={output.flat(v)}" for n, v in found.items()) for name, found in several.items()}
    shown = {**row, **lines, "tags": ", ".join(row["tags"])}
    ctx.answer(row, lambda: output.facts(output.fields(shown)))


def parse_stripped(given: Sequence[str] | None, name: str) -> dict[str, str]:
    """Parse repeated NAME=VALUE options, without spaces around the values. Raises Invalid."""
    return {key: value.strip() for key, value in parse_pairs(given, name).items()}
