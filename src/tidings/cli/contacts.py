"""`tidings contacts`: who can be written to; one by one, and many at once out of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, AsJson, ConfigFile, Database, Limit, argument, channel_option, option
from .output import Column

if TYPE_CHECKING:
    from ..config import Settings
    from ..inputs.pagination import Page

group = typer.Typer(help="Contacts: who can be written to, and under which address.", no_args_is_help=True)

Contact = Annotated[str, argument("ID", "The contact's id.")]


@dataclass(frozen=True)
class ContactOptions:
    """What is known of a contact."""

    name: Annotated[str | None, option("--name", "TEXT", "What people call them.")] = None
    address: Annotated[
        list[str] | None,
        option("--address", "-a", "CHANNEL=ADDRESS", "One for each channel; empty takes it away."),
    ] = None
    timezone: Annotated[str | None, option("--timezone", "NAME", "Their time zone: Europe/Berlin.")] = None
    language: Annotated[str | None, option("--language", "CODE", "Their language: de, pt-BR.")] = None
    tag: Annotated[list[str] | None, option("--tag", "-t", "WORD", "May be given several times.")] = None
    attribute: Annotated[
        list[str] | None, option("--attribute", "NAME=VALUE", "Anything else; empty takes it away.")
    ] = None

    def body(self) -> dict[str, Any]:
        """The fields of the contact."""
        return {
            "name": self.name,
            "addresses": pairs(self.address or [], "--address"),
            "timezone": self.timezone,
            "language": self.language,
            "tags": None if self.tag is None else [tag for tag in self.tag if tag],
            "attributes": pairs(self.attribute or [], "--attribute"),
        }


@command(
    group,
    epilog=examples(
        "tidings contacts add --name Ada --address phone=ada --timezone Europe/Berlin --tag volunteer"
    ),
)
async def add(
    ask: CommandContext,
    *,
    details: ContactOptions,
    or_change: Annotated[
        bool, typer.Option("--or-change", help="Change the contact that has one of the addresses.")
    ] = False,
) -> None:
    """Write down a new contact."""
    body = details.body()
    if or_change:
        row, is_new = await ask.desk.contacts.put(body)
    else:
        row, is_new = (await ask.desk.contacts.create(body)).answer, True
    ask.done(row, "added" if is_new else "changed")


@command(group, epilog=examples("tidings contacts edit ID --timezone Asia/Tokyo --attribute city=Tokyo"))
async def edit(
    ask: CommandContext,
    contact: Contact,
    *,
    details: ContactOptions,
) -> None:
    """Change what is named; what is left out stays, an empty text takes away. Tags replace those there."""
    ask.done(await ask.desk.contacts.edit(contact, details.body()), "changed")


@command(group, "list", epilog=examples("tidings contacts list --tag volunteer --language de"))
async def list_(
    ask: CommandContext,
    *,
    tag: Annotated[list[str] | None, option("--tag", "-t", "WORD", "Only those with all of these.")] = None,
    language: Annotated[str | None, option("CODE", "Only those of this language.")] = None,
    timezone: Annotated[str | None, option("NAME", "Only those in this time zone.")] = None,
    channel: Annotated[str | None, channel_option("Only those with an address on it.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Contacts, newest first."""
    from ..outbound.contacts.contact_filters import read_filter

    said = {"tags_all": tag or None, "language": language, "timezone": timezone, "channel": channel}
    wanted = read_filter(said, ask.desk.contacts.channels) if any(said.values()) else None
    page = await ask.desk.contacts.page(wanted, limit=limit, after=after)
    listed(ask, page, nothing="no contacts")


@command(group, epilog=examples("tidings contacts show ID"))
async def show(ask: CommandContext, contact: Contact) -> None:
    """One contact in full."""
    _print(ask, await ask.desk.contacts.show(contact))


@command(group, epilog=examples("tidings contacts find phone ada"))
async def find(
    ask: CommandContext,
    channel: Annotated[str, argument("CHANNEL", "Which channel.", complete=shell_completion.channels)],
    address: Annotated[str, argument("ADDRESS", "Which address.")],
) -> None:
    """The contact that has an address."""
    from ..model.errors import NotFound

    row = await ask.desk.contacts.at(channel, address)
    if row is None:
        raise NotFound(f"nobody has the address {address!r} on {channel}", remedy="check both")
    _print(ask, row)


@command(group, epilog=examples("tidings contacts remove ID"))
async def remove(ask: CommandContext, contact: Contact) -> None:
    """Forget a contact. Whoever has opted out stays opted out."""
    await ask.desk.contacts.remove(contact)
    ask.done({"id": contact}, "removed")


@group.command(
    "import",
    epilog=examples(
        "tidings contacts import people.csv --list volunteers",
        "tidings contacts import people.csv --map address.phone=mobile --map name=full_name --dry-run",
    ),
)
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or NDJSON; - reads standard input.")],
    *,
    form: Annotated[str | None, option("FORM", "csv or ndjson, if no name says so.")] = None,
    channel: Annotated[str | None, channel_option("Of a plain column `address`.")] = None,
    map_: Annotated[
        list[str] | None, option("--map", "WHAT=COLUMN", "What a column is that is called otherwise.")
    ] = None,
    tag: Annotated[list[str] | None, option("--tag", "-t", "WORD", "Put on everybody in the file.")] = None,
    list_: Annotated[
        str | None,
        option("--list", "LIST", "A list that all of them are put on.", complete=shell_completion.lists),
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="Take nobody when one row is bad.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")] = False,
    report: Annotated[Path | None, option("--report", "FILE", "Write every bad row there, as CSV.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Create or change many, found by their addresses; the same file again doubles nobody.

    Columns are name, zone, language, tags (a;b or a|b) and address.CHANNEL; any other is an attribute. An
    empty cell changes nothing, tags are added. A bad row is told with its number, the others are taken.
    """
    from .contact_imports import take_contacts

    options = {"channel": channel, "names": map_ or [], "tags": tag or [], "list_": list_}
    chosen: Settings = engine.settings(config, database)
    code = engine.run(
        take_contacts(
            chosen,
            file,
            form,
            options,
            all_or_nothing=all_or_nothing,
            dry_run=dry_run,
            report=report,
            as_json=as_json,
        )
    )
    if code:
        raise typer.Exit(code)


def listed(ask: CommandContext, page: Page, *, nothing: str) -> None:
    """Contacts, a line each."""
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        Column("name", lambda row: row["name"]),
        Column("addresses", lambda row: " ".join(f"{c}={a}" for c, a in row["addresses"].items())),
        Column("timezone", lambda row: row["timezone"], spare=True),
        Column("language", lambda row: row["language"], spare=True),
        Column("tags", lambda row: " ".join(row["tags"])),
    ]
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


def _print(ask: CommandContext, row: output.Row) -> None:
    several = {"addresses": row["addresses"], "attributes": row["attributes"]}
    lines = {
        name: ", ".join(f"{n}={output.flat(v)}" for n, v in found.items()) for name, found in several.items()
    }
    shown = {**row, **lines, "tags": ", ".join(row["tags"])}
    ask.answer(row, lambda: output.facts(output.fields(shown)))


def pairs(said: Sequence[str], option: str) -> dict[str, str]:
    """NAME=VALUE as people type it."""
    found: dict[str, str] = {}
    for text in said:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            from ..model.errors import Invalid

            raise Invalid(f"{option} {text!r} has no name", field=option, remedy=f"write {option} name=value")
        found[name.strip()] = value.strip()
    return found
