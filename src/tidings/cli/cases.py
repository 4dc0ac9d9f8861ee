"""`tidings cases`: conversations that need a person, and notices to admins."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Limit, argument, option
from .output import Column

group = typer.Typer(help="Handle conversations that need a person, and notices to admins.", no_args_is_help=True)

Case = Annotated[str, argument("CASE", "Case id.")]
By = Annotated[str, option("--by", "NAME", "Name of the person.", show_default=False)]


@command(group, "tidings cases list", "tidings cases list --reason review --state open", name="list")
async def list_(
    ctx: CommandContext,
    *,
    state: Annotated[
        str | None, option("--state", "-s", "STATE", "Filter by state: open, claimed, answered or closed.")
    ] = None,
    reason: Annotated[str | None, option("REASON", "Filter by reason, such as review.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List cases, newest first; without --state those that are not closed."""
    page = await ctx.app.workflows.cases.page(state=state, reason=reason, limit=limit, after=after)
    columns = [
        *Column.plain("state", "reason", "issue", "last message=text:spare", "squad", "opened=opened_at:time"),
        *Column.plain("due=deadline_at:time,spare", "claimed_by", "id:keep"),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no open cases")


@command(group, "tidings cases show ID")
async def show(ctx: CommandContext, case: Case) -> None:
    """Show a case with the last messages of its conversation."""
    _print(ctx, await ctx.app.workflows.cases.show(case))


@command(group, "tidings cases claim 0198c2f0-… --by Ada")
async def claim(ctx: CommandContext, case: Case, *, by: By) -> None:
    """Claim a case. The bot stays silent in its conversation until the case is handed back."""
    _print(ctx, await ctx.app.workflows.cases.claim(case, by))


@command(group, 'tidings cases answer 0198c2f0-… --text "Which night do you mean?"')
async def answer(
    ctx: CommandContext,
    case: Case,
    *,
    text: Annotated[str, option("TEXT", "Text to send to the group.", show_default=False)],
) -> None:
    """Answer the group in place of the bot."""
    _print(ctx, await ctx.app.workflows.cases.answer(case, text))


@command(group, "tidings cases handback 0198c2f0-…", "tidings cases handback 0198c2f0-… --related")
async def handback(
    ctx: CommandContext,
    case: Case,
    *,
    related: Annotated[
        bool | None,
        typer.Option("--related/--new", help="Treat a deferred message as part of the open request, or as a new one."),
    ] = None,
) -> None:
    """Hand the conversation back to the bot."""
    verdict = None if related is None else "related" if related else "new"
    _print(ctx, await ctx.app.workflows.cases.hand_back(case, verdict=verdict))


@command(group, 'tidings cases close ID --note "called back"')
async def close(
    ctx: CommandContext, case: Case, *, note: Annotated[str, option("TEXT", "Note about the resolution.")] = ""
) -> None:
    """Close a case and end its workflow. The bot handles the next messages."""
    _print(ctx, await ctx.app.workflows.cases.close(case, note=note))


@command(group, "tidings cases notices")
async def notices(ctx: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """List notices to admins, newest first."""
    page = await ctx.app.workflows.cases.notices(limit=limit, after=after)
    columns = [
        *Column.plain("reason", "issue", "times:right", "last=last_at:time", "sent=sent_at:time", "acknowledged_by"),
        *Column.plain("problem:spare", "id:keep"),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no notices")


@command(group, "tidings cases acknowledge ID --by Ada")
async def acknowledge(ctx: CommandContext, notice: Annotated[str, argument("NOTICE", "Notice id.")], *, by: By) -> None:
    """Acknowledge a notice. If the problem occurs again, a new notice is sent."""
    await ctx.app.workflows.cases.acknowledge(notice, by)
    ctx.answer({"id": notice, "acknowledged_by": by}, lambda: output.say((notice, "bold"), f" acknowledged by {by}"))


def _print(ctx: CommandContext, row: output.Row) -> None:
    def in_words() -> None:
        known = {name: value for name, value in row.items() if name != "lines"}
        output.facts(output.fields(known))
        for line in row["lines"]:
            output.say((f"{line['name']} ({line['squad']}): ", "bold"), output.flat(line["text"]) or "(no text)")
            for reply in line["replies"]:
                output.say(("  Tidings: ", "dim"), output.flat(reply))

    ctx.answer(row, in_words)
