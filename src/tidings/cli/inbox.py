"""`tidings inbox`: received messages, their state, and the sources."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Limit, argument, option
from .output import Column

group = typer.Typer(help="Inspect received messages, conversations and sources.", no_args_is_help=True)

InboxMessageId = Annotated[str, argument("ID", "Id of the received message.")]


@command(group, "tidings inbox list --state failed", "tidings inbox list --source crew", name="list")
async def list_(
    ctx: CommandContext,
    *,
    state: Annotated[
        str | None,
        option(
            "--state",
            "-s",
            "STATE",
            "Filter by state: received, pending, processing, done, failed, expired or skipped.",
        ),
    ] = None,
    source: Annotated[str | None, option("NAME", "Filter by source.")] = None,
    conversation: Annotated[str | None, option("NAME", "Filter by conversation, such as crew/9.")] = None,
    sender: Annotated[str | None, option("ID", "Filter by sender, by its id on the platform.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List received messages, newest first."""
    page = await ctx.app.inbound.inbox.page(
        state=state, source=source, conversation=conversation, sender=sender, limit=limit, after=after
    )
    columns = [
        *Column.plain("state:colored", "sent=sent_at:time", "conversation"),
        Column("from", lambda row: row["name"] or row["sender"]),
        Column("text", lambda row: row["text"], _text),
        *Column.plain("reason:spare", "id:keep"),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no messages received yet")


def _text(row: output.Row) -> str:
    """Return the text, or a description of a message without one."""
    text: str = row["text"]
    if row["kind"] == "delete":
        return "(a message was deleted)"
    if not text.strip():
        return f"({row['attachments']} files)" if row["attachments"] else "(no text)"
    return f"(edited) {text}" if row["kind"] == "edit" else text


@command(group, "tidings inbox show ID")
async def show(ctx: CommandContext, message: InboxMessageId) -> None:
    """Show a received message with its history."""
    row = await ctx.app.inbound.inbox.show(message)

    def in_words() -> None:
        known = {name: value for name, value in row.items() if name not in ("history", "raw")}
        output.facts(output.fields(known))
        for step in row["history"]:
            output.say(f"{output.readable(step['at'])}  {step['origin']} → {step['state']}  {step['detail'] or ''}")

    ctx.answer(row, in_words)


@command(group, "tidings inbox retry 0198c2f0-…")
async def retry(ctx: CommandContext, message: InboxMessageId) -> None:
    """Process a failed, expired or skipped message again."""
    row = await ctx.app.inbound.inbox.retry(message)
    ctx.answer(row, lambda: output.say((row["id"], "bold"), " will be processed again"))


@command(group, "tidings inbox sources")
async def sources(ctx: CommandContext) -> None:
    """List the sources with their cursor and last error."""
    columns = [
        *Column.plain("name:keep", "kind", "how", "read=read_at:time", "cursor:spare"),
        *Column.plain("failures=consecutive_failures:right", "problem"),
    ]
    nothing = "no sources are configured; see: tidings docs inbound-sources"
    ctx.listing(await ctx.app.inbound.inbox.sources(), columns, nothing=nothing)
