"""`tidings dead`: messages that failed for good and wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, InDoubt, Limit, OfChannel, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..outbound.dead_letters import DeadLetterMoves

group = typer.Typer(help="Dead letters: what failed for good and waits for a person.", no_args_is_help=True)

Category = Annotated[
    str | None, option("NAME", "Only temporary, permanent, throttling, validation or system ones.")
]
Letter = Annotated[str | None, argument("ID", "One message's id.", complete=shell_completion.dead_letters)]
All = Annotated[bool, typer.Option("--all", help="All that match the filters.")]
PerSecond = Annotated[float | None, option("N", "With --all: so many a second, not all at once.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@command(
    group,
    "list",
    epilog=examples("tidings dead list", "tidings dead list --channel phone --category permanent"),
)
async def list_(
    ask: CommandContext,
    *,
    channel: OfChannel = None,
    category: Category = None,
    unknown: InDoubt = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Dead letters, newest first, each with its last error."""
    page = await ask.desk.dead.page(
        channel=channel, category=category, unknown=unknown, limit=limit, after=after
    )
    now = ask.desk.clock.now()
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        Column.time("failed", "failed_at", now),
        Column("channel", lambda row: row["channel"], spare=True),
        Column("to", lambda row: row["to"]),
        Column("attempts", lambda row: row["attempts"], right=True, spare=True),
        Column("category", lambda row: "in doubt" if row["unknown"] else row["category"]),
        Column("error", lambda row: row["error"]),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="no dead letters")


@command(group, epilog=examples("tidings dead groups"))
async def groups(ask: CommandContext) -> None:
    """Dead letters counted by channel and category, with an error of each."""
    now = ask.desk.clock.now()
    columns = [
        Column("count", lambda row: row["count"], right=True),
        Column("channel", lambda row: row["channel"]),
        Column("category", lambda row: "in doubt" if row["unknown"] else row["category"]),
        Column.time("since", "since", now),
        Column.time("latest", "latest", now),
        Column("error", lambda row: row["error"]),
    ]
    ask.listing(await ask.desk.dead.groups(), columns, nothing="no dead letters")


@command(group, epilog=examples("tidings dead retry --all --channel phone --category temporary"))
async def retry(
    ask: CommandContext,
    message: Letter = None,
    *,
    all_: All = False,
    channel: OfChannel = None,
    category: Category = None,
    unknown: InDoubt = False,
    per_second: PerSecond = None,
    yes: Yes = False,
) -> None:
    """Start dead letters afresh, with all their tries.

    Those in doubt (they may have been sent) are left out of --all unless you say --uncertain.
    """
    _one_or_all(message, all_)
    if message is not None:
        ask.done(await ask.desk.messages.retry(message), "retried")
        return
    _confirm("retry", channel, category, unknown, yes=yes)
    with output.working("retrying dead letters", is_shown=not ask.as_json):
        swept = await ask.desk.dead.retry_all(
            channel=channel, category=category, unknown=unknown, per_second=per_second
        )
    _many(ask, "retried", swept)


@command(group, epilog=examples("tidings dead discard --all --category validation --yes"))
async def discard(
    ask: CommandContext,
    message: Letter = None,
    *,
    all_: All = False,
    channel: OfChannel = None,
    category: Category = None,
    unknown: InDoubt = None,
    yes: Yes = False,
) -> None:
    """Give dead letters up. They stay in the history as cancelled."""
    _one_or_all(message, all_)
    if message is not None:
        ask.done(await ask.desk.messages.discard(message), "discarded")
        return
    _confirm("discard", channel, category, unknown, yes=yes)
    with output.working("giving dead letters up", is_shown=not ask.as_json):
        swept = await ask.desk.dead.discard_all(channel=channel, category=category, unknown=unknown)
    _many(ask, "discarded", swept)


def _one_or_all(message: str | None, all_: bool) -> None:
    if (message is None) == (not all_):
        from ..model.errors import Invalid

        problem = "an id and --all are both given" if all_ else "nothing says which dead letters are meant"
        raise Invalid(problem, remedy="give one id, or --all with filters")


def _confirm(
    verb: str, channel: str | None, category: str | None, unknown: bool | None, *, yes: bool
) -> None:
    """Ask before many are moved; where nobody can answer, --yes is needed."""
    if yes:
        return
    import sys

    doubt = {True: "in-doubt", False: "certain", None: ""}[unknown]
    where = f"of {channel}" if channel else "of every channel"
    which = " ".join(word for word in (doubt, category, "dead letters", where) if word)
    if not sys.stdin.isatty():
        from ..model.errors import Invalid

        raise Invalid(f"this would {verb} all {which}", remedy="add --yes to do it without a question")
    typer.confirm(f"{verb.capitalize()} all {which}?", abort=True)


def _many(ask: CommandContext, verb: str, swept: DeadLetterMoves) -> None:
    more = "; there are more: run it again" if swept.more else ""
    ask.answer({verb: swept.moved, "more": swept.more}, lambda: output.say(f"{swept.moved:,} {verb}", more))
