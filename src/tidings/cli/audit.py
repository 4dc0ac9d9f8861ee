"""`tidings audit`: the audit log, and verification of its hash chain."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Limit, option
from .output import Column

group = typer.Typer(help="List and verify the audit log.", no_args_is_help=True)


@command(group, "tidings audit list", "tidings audit list --action channels.pause --json", name="list")
async def list_(
    ctx: CommandContext,
    *,
    actor: Annotated[str | None, option("NAME", "Filter by key name, or 'command line'.")] = None,
    action: Annotated[str | None, option("ACTION", "Filter by action, such as messages.cancel.")] = None,
    tenant: Annotated[str, option("NAME", "Filter by tenant. [all]")] = "*",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List changes and attempted changes, newest first."""
    page = await ctx.app.access.audit.page(actor=actor, action=action, of=tenant, limit=limit, after=after)
    columns = Column.plain(
        "at:time", "actor", "action", "target:keep", "status:right", "from=origin:spare", "tenant:spare", "detail:spare"
    )
    ctx.listing(page.items, columns, nothing="no entries yet", more=page.next)


@command(group, "tidings audit verify", "tidings audit verify --head 1238:0f3a... --json")
async def verify(
    ctx: CommandContext,
    *,
    head: Annotated[
        str | None, option("N:HASH", "Head from an earlier verification, which must still be in the chain.")
    ] = None,
) -> int:
    """Verify the hash chain of the audit log: no entry was changed or deleted.

    Exit code 1 if the chain is broken.
    """
    from ..access.audit_chain import verify_chain

    found = await verify_chain(ctx.app.store, head=head)

    def in_words() -> None:
        for problem in found.problems:
            output.say((problem, "bold red"))
        verdict = "verified: unchanged" if found.intact else "checked: the log was tampered with"
        output.say(f"{found.lines:,} entries ", (verdict, "green" if found.intact else "bold red"))
        if found.pruned_until is not None:
            output.say(f"entries up to {found.pruned_until} were pruned by retention")
        if found.head is not None:
            output.say(f"store elsewhere for the next verification: --head {found.head}")

    ctx.answer(found._asdict(), in_words)
    return 0 if found.intact else 1
