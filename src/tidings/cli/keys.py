"""`tidings keys`: API keys. A key is shown only when it is created or rotated."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Limit, argument, option
from .output import Column, Row

group = typer.Typer(help="Create, rotate and revoke API keys.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "Key id.")]


@command(
    group,
    "tidings keys create billing --role sender --scope messages --rate 20 --expires-in 90d",
    "tidings keys create acme-admin --role admin --tenant acme",
)
async def create(
    ctx: CommandContext,
    name: Annotated[str, argument("NAME", "Name of the key.")],
    *,
    role: Annotated[str, option("--role", "-r", "ROLE", "admin, operator, sender, viewer or metrics.")],
    tenant: Annotated[str | None, option("NAME", "Tenant of the key. [default]")] = None,
    scope: Annotated[
        list[str] | None, option("--scope", "SCOPE", "Limit the key to a scope, such as messages. Repeatable.")
    ] = None,
    rate: Annotated[int | None, option("N", "Calls per second, over all processes. [no limit]")] = None,
    expires_in: Annotated[str | None, option("DURATION", "Lifetime, such as 90d. [no expiry]")] = None,
) -> None:
    """Create an API key. It is shown only once.

    Anyone with access to the database can create a key, so use this command if all keys are lost.
    """
    body = {"name": name, "role": role, "tenant": tenant, "scopes": scope or None, "rate": rate}
    _with_secret(ctx, await ctx.app.access.keys.create({**body, "expires_in": expires_in}))


@command(group, "tidings keys list", "tidings keys list --tenant acme", name="list")
async def list_(
    ctx: CommandContext,
    *,
    tenant: Annotated[str, option("NAME", "Filter by tenant. [all]")] = "*",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List keys, newest first, without their secrets."""
    page = await ctx.app.access.keys.page(of=tenant, limit=limit, after=after)
    columns = [
        *Column.plain("id:keep", "name", "tenant", "role", "state:colored", "prefix:keep"),
        Column("scopes", lambda row: ",".join(row["scopes"]), spare=True),
        *Column.plain("rate:right,spare", "expires=expires_at:time", "last used=last_used_at:time"),
    ]
    nothing = "no keys yet; see: tidings keys create --help"
    ctx.listing(page.items, columns, nothing=nothing, more=page.next)


@command(group, "tidings keys rotate ID", "tidings keys rotate ID --overlap 0")
async def rotate(
    ctx: CommandContext,
    id_: Id,
    *,
    overlap: Annotated[str | None, option("DURATION", "How long the old secret stays valid. [24h]")] = None,
) -> None:
    """Give a key a new secret, shown only once. The old one stays valid for a day; sessions end."""
    _with_secret(ctx, await ctx.app.access.keys.rotate(id_, overlap=overlap))


@command(group, "tidings keys revoke ID")
async def revoke(ctx: CommandContext, id_: Id) -> None:
    """Revoke a key. It stops working everywhere within one second, with its sessions and live pages.

    The last admin key cannot be revoked: create another one first.
    """
    row = await ctx.app.access.keys.revoke(id_)
    ctx.answer(row, lambda: output.say((row["name"], "bold"), " revoked"))


def _with_secret(ctx: CommandContext, row: Row) -> None:
    def in_words() -> None:
        output.facts(output.fields(row, "id", "name", "tenant", "role", "key"))
        output.say(("save the key now: it will not be shown again", "yellow"))

    ctx.answer(row, in_words)
