"""`tidings dead`: the dead-letter list, with retry and discard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .options import After, Limit, OfChannel, Uncertain, Yes, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..outbound.dead_letters import DeadLetterMoves

group = typer.Typer(help="Inspect, retry and discard dead letters (permanently failed messages).", no_args_is_help=True)

Category = Annotated[
    str | None, option("NAME", "Filter by category: temporary, permanent, throttling, validation or system.")
]
Letter = Annotated[str | None, argument("ID", "Message id.", complete=shell_completion.dead_letters)]
All = Annotated[bool, typer.Option("--all", help="Apply to all dead letters that match the filters.")]
PerSecond = Annotated[float | None, option("N", "With --all: messages per second. [no limit]")]


@command(group, "tidings dead list", "tidings dead list --channel phone --category permanent", name="list")
async def list_(
    ctx: CommandContext,
    *,
    channel: OfChannel = None,
    category: Category = None,
    unknown: Uncertain = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List dead letters with their last error, newest first."""
    page = await ctx.outbound.dead.page(channel=channel, category=category, unknown=unknown, limit=limit, after=after)
    columns = [
        *Column.plain("id:keep", "failed=failed_at:time", "channel:spare", "to", "attempts:right,spare"),
        Column("category", lambda row: "uncertain" if row["unknown"] else row["category"]),
        *Column.plain("error"),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no dead letters")


@command(group, "tidings dead groups")
async def groups(ctx: CommandContext) -> None:
    """Count dead letters by channel and category, with an example error."""
    columns = [
        *Column.plain("count:right", "channel"),
        Column("category", lambda row: "uncertain" if row["unknown"] else row["category"]),
        *Column.plain("since:time", "latest:time", "error"),
    ]
    ctx.listing(await ctx.outbound.dead.groups(), columns, nothing="no dead letters")


@command(group, "tidings dead retry --all --channel phone --category temporary")
async def retry(
    ctx: CommandContext,
    message: Letter = None,
    *,
    all_: All = False,
    channel: OfChannel = None,
    category: Category = None,
    unknown: Uncertain = False,
    per_second: PerSecond = None,
    yes: Yes = False,
) -> None:
    """Retry dead letters with a full set of attempts.

    --all omits uncertain messages, which may have been sent, unless --uncertain is given.
    """
    _one_or_all(message, all_)
    if message is not None:
        ctx.done(await ctx.outbound.messages.retry(message), "retried")
        return
    _confirm("retry", channel, category, unknown, yes=yes)
    with output.working("retrying dead letters", is_shown=not ctx.as_json):
        swept = await ctx.outbound.dead.retry_all(
            channel=channel, category=category, unknown=unknown, per_second=per_second
        )
    _many(ctx, "retried", swept)


@command(group, "tidings dead discard --all --category validation --yes")
async def discard(
    ctx: CommandContext,
    message: Letter = None,
    *,
    all_: All = False,
    channel: OfChannel = None,
    category: Category = None,
    unknown: Uncertain = None,
    yes: Yes = False,
) -> None:
    """Discard dead letters. They stay in the history as cancelled."""
    _one_or_all(message, all_)
    if message is not None:
        ctx.done(await ctx.outbound.messages.discard(message), "discarded")
        return
    _confirm("discard", channel, category, unknown, yes=yes)
    with output.working("discarding dead letters", is_shown=not ctx.as_json):
        swept = await ctx.outbound.dead.discard_all(channel=channel, category=category, unknown=unknown)
    _many(ctx, "discarded", swept)


def _one_or_all(message: str | None, all_: bool) -> None:
    if (message is None) == (not all_):
        from ..model.errors import Invalid

        problem = "an id and --all are both given" if all_ else "no dead letters are selected"
        raise Invalid(problem, remedy="give an id, or --all with filters")


def _confirm(verb: str, channel: str | None, category: str | None, unknown: bool | None, *, yes: bool) -> None:
    """Ask for confirmation; without a terminal, --yes is required."""
    if yes:
        return
    import sys

    certainty = {True: "uncertain", False: "certain", None: ""}[unknown]
    where = f"of {channel}" if channel else "of every channel"
    which = " ".join(word for word in (certainty, category, "dead letters", where) if word)
    if not sys.stdin.isatty():
        from ..model.errors import Invalid

        raise Invalid(f"this would {verb} all {which}", remedy="add --yes to confirm")
    typer.confirm(f"{verb.capitalize()} all {which}?", abort=True)


def _many(ctx: CommandContext, verb: str, swept: DeadLetterMoves) -> None:
    more = "; there are more: run the command again" if swept.more else ""
    ctx.answer({verb: swept.moved, "more": swept.more}, lambda: output.say(f"{swept.moved:,} {verb}", more))
