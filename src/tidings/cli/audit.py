"""`tidings audit`: who did what, when, to what, from where."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import Ask, command
from .help import examples
from .options import After, Limit
from .output import Column

group = typer.Typer(help="The audit trail: who changed what, when, from where.", no_args_is_help=True)


@command(
    group, "list", epilog=examples("tidings audit list", "tidings audit list --what channels.pause --json")
)
async def list_(
    ask: Ask,
    *,
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Only by this key, or 'command line'.")
    ] = None,
    what: Annotated[
        str | None, typer.Option("--what", metavar="WHAT", help="Only this, such as messages.cancel.")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Only of this tenant. [all]")] = "*",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """What was changed or tried, newest first."""
    page = await ask.app.access.audit.page(who=who, what=what, of=tenant, limit=limit, after=after)
    now = ask.app.clock.now()
    columns = [
        Column("at", lambda row: row["at"], lambda row: output.away(row["at"], now)),
        Column("who", lambda row: row["who"]),
        Column("what", lambda row: row["what"]),
        Column("target", lambda row: row["target"], keep=True),
        Column("status", lambda row: row["status"], right=True),
        Column("from", lambda row: row["origin"], spare=True),
        Column("tenant", lambda row: row["tenant"], spare=True),
        Column("detail", lambda row: row["detail"], spare=True),
    ]
    ask.listing(page.items, columns, nothing="nothing was changed yet", more=page.next)
