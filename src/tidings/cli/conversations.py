"""`tidings inbox conversations`, `conversation` and `replay`: decisions, and a dry run of them today."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .inbox import group
from .options import After, Limit, argument
from .output import Column

GROUP = group

Conversation = Annotated[str, argument("CONVERSATION", "Conversation, such as crew/1234.")]


@command(group, "tidings inbox conversations")
async def conversations(ctx: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """List conversations by their newest message."""
    page = await ctx.app.workflows.conversations.page(limit=limit, after=after)
    columns = Column.plain("conversation:keep", "messages:right", "last=last_at:time")
    ctx.listing(page.items, columns, more=page.next, nothing="no conversations yet")


@command(group, "tidings inbox conversation crew/1234")
async def conversation(ctx: CommandContext, conversation: Conversation, *, after: After = None) -> None:
    """Show a conversation: each message with its steps and decisions."""
    row = await ctx.app.workflows.conversations.show(conversation, after=after)

    def in_words() -> None:
        for line in row["lines"]:
            if line["kind"] == "step":
                output.say((f"{output.readable(line['at'])}  {line['what']}  ", "dim"), output.flat(line["facts"]))
                continue
            output.say((f"{line['name']} ({line['squad']}): ", "bold"), output.flat(line["text"]) or "(no text)")
            output.say((f"  {line['decision']}: {line['reason']}", "cyan"))
            for step in line["steps"]:
                details = {name: value for name, value in step.items() if name not in ("what", "at")}
                output.say((f"  {step['what']}  ", "dim"), output.flat(details))

    ctx.answer(row, in_words)


@command(group, "tidings inbox replay crew/1234", "tidings inbox replay crew/1234 --rules --all")
async def replay(
    ctx: CommandContext,
    conversation: Conversation,
    *,
    by_rules: Annotated[
        bool, typer.Option("--rules", help="Use only the rules, not the recorded answers of the model.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Include messages with an unchanged result.")] = False,
) -> int:
    """Re-run a past conversation offline and show what would change. Exit code 1 if anything would."""
    compared = await ctx.app.workflows.replay(conversation, by_rules=by_rules)
    changed = [each for each in compared if each.is_changed]
    shown = compared if everything else changed
    if ctx.as_json:
        output.say_json({"messages": len(compared), "changed": len(changed), "items": [e.plainly() for e in shown]})
        return bool(changed)
    for each in shown:
        output.say((f"{each.name}: ", "bold"), output.flat(each.text))
        for word, side in (("then", each.then), ("now", each.now)):
            output.say((f"  {word:4} {side.decision}", "cyan" if word == "then" else "yellow"))
            for command_ in side.commands:
                output.say(f"       {' '.join(command_)}")
            for reply in side.replies:
                output.say(("       reply: ", "dim"), output.flat(reply))
    output.say(f"{len(compared):,} messages, {len(changed):,} would change")
    return bool(changed)
