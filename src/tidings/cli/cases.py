"""`tidings cases`: what a person is called for, takes over, answers and gives back."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column

group = typer.Typer(
    help="Cases: what a person takes over from the bot, and what admins were told.", no_args_is_help=True
)

Case = Annotated[str, argument("CASE", "The case's id.")]
By = Annotated[str, option("--by", "NAME", "Who does it.", show_default=False)]


@command(
    group, "list", epilog=examples("tidings cases list", "tidings cases list --reason review --state open")
)
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[
        str | None, option("--state", "-s", "STATE", "open, claimed, answered or closed.")
    ] = None,
    reason: Annotated[str | None, option("--reason", "WORD", "Only of this reason, such as review.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Cases that are not closed, newest first."""
    page = await ask.app.workflows.cases.page(state=state, reason=reason, limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        *Column.plain("state", "reason", "issue"),
        Column("last message", lambda row: row["text"], spare=True),
        Column("squad", lambda row: row["squad"]),
        Column.time("opened", "opened_at", now),
        Column.time("by", "deadline_at", now, spare=True),
        Column("holder", lambda row: row["claimed_by"]),
        Column("id", lambda row: row["id"], keep=True),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="no case is open")


@command(group, epilog=examples("tidings cases show ID"))
async def show(ask: CommandContext, case: Case) -> None:
    """One case with the last lines of its conversation."""
    _say(ask, await ask.app.workflows.cases.show(case))


@command(group, epilog=examples("tidings cases claim 0198c2f0-… --by Ada"))
async def claim(ask: CommandContext, case: Case, *, by: By) -> None:
    """Take a case: the bot is silent in its conversation until it is given back."""
    _say(ask, await ask.app.workflows.cases.claim(case, by))


@command(group, epilog=examples('tidings cases answer 0198c2f0-… --text "Which night do you mean?"'))
async def answer(
    ask: CommandContext,
    case: Case,
    *,
    text: Annotated[str, option("--text", "TEXT", "What to say to the group.", show_default=False)],
) -> None:
    """Say something to the group in the bot's place."""
    _say(ask, await ask.app.workflows.cases.answer(case, text))


@command(
    group, epilog=examples("tidings cases handback 0198c2f0-…", "tidings cases handback 0198c2f0-… --related")
)
async def handback(
    ask: CommandContext,
    case: Case,
    *,
    related: Annotated[
        bool | None,
        typer.Option(
            "--related/--new", help="What a held message is: part of the open request, or a new one."
        ),
    ] = None,
) -> None:
    """Give the conversation back to the bot."""
    verdict = None if related is None else "related" if related else "new"
    _say(ask, await ask.app.workflows.cases.hand_back(case, verdict=verdict))


@command(group, epilog=examples('tidings cases close ID --note "called back"'))
async def close(
    ask: CommandContext,
    case: Case,
    *,
    note: Annotated[str, option("--note", "TEXT", "What was done about it.")] = "",
) -> None:
    """It is dealt with: its workflow ends, and the bot goes on with what comes next."""
    _say(ask, await ask.app.workflows.cases.close(case, note=note))


@command(group, epilog=examples("tidings cases notices"))
async def notices(ask: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """What admins were told, newest first."""
    page = await ask.app.workflows.cases.notices(limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        *Column.plain("reason", "issue"),
        Column("times", lambda row: row["times"], right=True),
        Column.time("last", "last_at", now),
        Column.time("told", "sent_at", now),
        Column("seen by", lambda row: row["acknowledged_by"]),
        Column("problem", lambda row: row["problem"], spare=True),
        Column("id", lambda row: row["id"], keep=True),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nothing had to be told")


@command(group, epilog=examples("tidings cases acknowledge ID --by Ada"))
async def acknowledge(
    ask: CommandContext,
    notice: Annotated[str, argument("NOTICE", "The notice's id.")],
    *,
    by: By,
) -> None:
    """Somebody has seen a notice: if the same happens again, it is told again."""
    await ask.app.workflows.cases.acknowledge(notice, by)
    ask.answer(
        {"id": notice, "acknowledged_by": by}, lambda: output.say((notice, "bold"), f" was seen by {by}")
    )


def _say(ask: CommandContext, row: output.Row) -> None:
    def in_words() -> None:
        known = {name: value for name, value in row.items() if name != "lines"}
        output.facts(output.fields(known))
        for line in row["lines"]:
            output.say(
                (f"{line['name']} ({line['squad']}): ", "bold"), output.flat(line["text"]) or "(no text)"
            )
            for reply in line["replies"]:
                output.say(("  Tidings: ", "dim"), output.flat(reply))

    ask.answer(row, in_words)
