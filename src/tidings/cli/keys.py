"""`tidings keys`: who may call. A key is shown once, when it is made or rotated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column, Row

if TYPE_CHECKING:
    from rich.text import Text

group = typer.Typer(help="Keys: who may call, as what, and for which tenant.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "The key's id.")]


@command(
    group,
    epilog=examples(
        "tidings keys create billing --role sender --scope messages --rate 20 --expires-in 90d",
        "tidings keys create acme-admin --role admin --tenant acme",
    ),
)
async def create(
    ask: CommandContext,
    name: Annotated[str, argument("NAME", "Who it is for.")],
    *,
    role: Annotated[str, option("--role", "-r", "ROLE", "admin, operator, sender, viewer or metrics.")],
    tenant: Annotated[str | None, option("--tenant", "NAME", "For whom. [default]")] = None,
    scope: Annotated[
        list[str] | None, option("--scope", "AREA", "Only for this area, such as messages; repeatable.")
    ] = None,
    rate: Annotated[int | None, option("--rate", "N", "Calls a second, over all processes.")] = None,
    expires_in: Annotated[
        str | None, option("--expires-in", "TIME", "How long it is good, such as 90d.")
    ] = None,
) -> None:
    """A new key. It is shown this once.

    Whoever can open the database can always make one, so this is how to get in again after a key was lost.
    """
    body = {"name": name, "role": role, "tenant": tenant, "scopes": scope or None, "rate": rate}
    _with_secret(ask, await ask.app.access.keys.create({**body, "expires_in": expires_in}))


@command(group, "list", epilog=examples("tidings keys list", "tidings keys list --tenant acme"))
async def list_(
    ask: CommandContext,
    *,
    tenant: Annotated[str, option("--tenant", "NAME", "Only of this tenant. [all]")] = "*",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Keys, newest first, without their secrets."""
    page = await ask.app.access.keys.page(of=tenant, limit=limit, after=after)
    now = ask.app.clock.now()
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        *Column.plain("name", "tenant", "role"),
        Column("state", lambda row: row["state"], _state),
        Column("begins with", lambda row: row["prefix"], keep=True),
        Column("scopes", lambda row: ",".join(row["scopes"]), spare=True),
        Column("rate", lambda row: row["rate"], right=True, spare=True),
        Column.time("expires", "expires_at", now),
        Column.time("last used", "last_used_at", now),
    ]
    nothing = "no keys yet; see: tidings keys create --help"
    ask.listing(page.items, columns, nothing=nothing, more=page.next)


@command(group, epilog=examples("tidings keys rotate ID", "tidings keys rotate ID --overlap 0"))
async def rotate(
    ask: CommandContext,
    id_: Id,
    *,
    overlap: Annotated[
        str | None, option("--overlap", "TIME", "How long the one before opens. [24h]")
    ] = None,
) -> None:
    """A new secret for a key, shown this once. The one before opens for another day; sessions end at once."""
    _with_secret(ask, await ask.app.access.keys.rotate(id_, overlap=overlap))


@command(group, epilog=examples("tidings keys revoke ID"))
async def revoke(ask: CommandContext, id_: Id) -> None:
    """Revoke a key. It stops working everywhere within a second, and so do its sessions and live pages.

    The last admin key is never revoked: create another first.
    """
    row = await ask.app.access.keys.revoke(id_)
    ask.answer(row, lambda: output.say((row["name"], "bold"), " opens nothing any more"))


def _with_secret(ask: CommandContext, row: Row) -> None:
    def in_words() -> None:
        output.facts(output.fields(row, "id", "name", "tenant", "role", "key"))
        output.say(("write the key down now: it is not shown again", "yellow"))

    ask.answer(row, in_words)


def _state(row: Row) -> Text:
    from rich.text import Text

    return Text(row["state"], "green" if row["state"] == "active" else "dim")
