"""`tidings inbox conversations`, `conversation` and `replay`: what was decided, and what would be today."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .inbox import group
from .options import After, Limit, argument
from .output import Column

GROUP = group  # of the inbox, with what is added here

Conversation = Annotated[str, argument("CONVERSATION", "Its name, such as crew/1234.")]


@command(group, epilog=examples("tidings inbox conversations"))
async def conversations(ask: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """Conversations, the one with the newest message first."""
    page = await ask.app.workflows.conversations.page(limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        Column("conversation", lambda row: row["conversation"], keep=True),
        Column("messages", lambda row: row["messages"], right=True),
        Column.time("last", "last_at", now),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="no message was worked through yet")


@command(group, epilog=examples("tidings inbox conversation crew/1234"))
async def conversation(ask: CommandContext, conversation: Conversation, *, after: After = None) -> None:
    """One conversation: each message with every step and decision."""
    row = await ask.app.workflows.conversations.show(conversation, after=after)

    def in_words() -> None:
        for line in row["lines"]:
            if line["kind"] == "step":
                output.say(
                    (f"{output.spoken(line['at'])}  {line['what']}  ", "dim"), output.flat(line["facts"])
                )
                continue
            output.say(
                (f"{line['name']} ({line['squad']}): ", "bold"), output.flat(line["text"]) or "(no text)"
            )
            output.say((f"  {line['decision']}: {line['reason']}", "cyan"))
            for step in line["steps"]:
                told = {name: value for name, value in step.items() if name not in ("what", "at")}
                output.say((f"  {step['what']}  ", "dim"), output.flat(told))

    ask.answer(row, in_words)


@command(
    group, epilog=examples("tidings inbox replay crew/1234", "tidings inbox replay crew/1234 --rules --all")
)
async def replay(
    ask: CommandContext,
    conversation: Conversation,
    *,
    by_rules: Annotated[
        bool, typer.Option("--rules", help="By the rules alone, not by the model's recorded answers.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also messages that would not change.")] = False,
) -> int:
    """Work through a past conversation again, offline; shows what would change. Exit code 1 if anything."""
    compared = await ask.app.workflows.replay(conversation, by_rules=by_rules)
    differing = [each for each in compared if each.is_changed]
    shown = compared if everything else differing
    if ask.as_json:
        output.say_json(
            {"messages": len(compared), "changed": len(differing), "items": [e.plainly() for e in shown]}
        )
        return bool(differing)
    for each in shown:
        output.say((f"{each.name}: ", "bold"), output.flat(each.text))
        for word, side in (("then", each.then), ("now", each.now)):
            output.say((f"  {word:4} {side.decision}", "cyan" if word == "then" else "yellow"))
            for command_ in side.commands:
                output.say(f"       {' '.join(command_)}")
            for reply in side.replies:
                output.say(("       says: ", "dim"), output.flat(reply))
    output.say(f"{len(compared):,} messages, {len(differing):,} would change")
    return bool(differing)
