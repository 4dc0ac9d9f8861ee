"""`tidings audit`: who did what, when, to what, from where."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, option
from .output import Column

group = typer.Typer(help="The audit trail: who changed what, when, from where.", no_args_is_help=True)


@command(
    group, "list", epilog=examples("tidings audit list", "tidings audit list --action channels.pause --json")
)
async def list_(
    ask: CommandContext,
    *,
    actor: Annotated[str | None, option("--actor", "NAME", "Only by this key, or 'command line'.")] = None,
    action: Annotated[str | None, option("--action", "ACTION", "Only this, such as messages.cancel.")] = None,
    tenant: Annotated[str, option("--tenant", "NAME", "Only of this tenant. [all]")] = "*",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """What was changed or tried, newest first."""
    page = await ask.app.access.audit.page(actor=actor, action=action, of=tenant, limit=limit, after=after)
    now = ask.app.clock.now()
    columns = [
        Column.time("at", "at", now),
        *Column.plain("actor", "action"),
        Column("target", lambda row: row["target"], keep=True),
        Column("status", lambda row: row["status"], right=True),
        Column("from", lambda row: row["origin"], spare=True),
        Column("tenant", lambda row: row["tenant"], spare=True),
        Column("detail", lambda row: row["detail"], spare=True),
    ]
    ask.listing(page.items, columns, nothing="nothing was changed yet", more=page.next)


@command(group, epilog=examples("tidings audit verify", "tidings audit verify --head 1238:0f3a... --json"))
async def verify(
    ask: CommandContext,
    *,
    head: Annotated[
        str | None, option("--head", "N:HASH", "Head of an earlier verification, noted elsewhere.")
    ] = None,
) -> int:
    """Verify that no line of the audit trail was changed or deleted.

    Follows the chain of hashes over all lines. The exit code is 1 when it is broken.
    """
    from ..access.audit_chain import verify_chain as follow

    found = await follow(ask.app.store, head=head)

    def in_words() -> None:
        for problem in found.problems:
            output.say((problem, "bold red"))
        said = "are as they were written" if found.intact else "were verified; the trail was tampered with"
        output.say(f"{found.lines:,} lines ", (said, "green" if found.intact else "bold red"))
        if found.pruned_until is not None:
            output.say(f"older lines, up to {found.pruned_until}, were pruned by retention")
        if found.head is not None:
            output.say(f"note elsewhere, to compare with later: --head {found.head}")

    ask.answer(found._asdict(), in_words)
    return 0 if found.intact else 1
