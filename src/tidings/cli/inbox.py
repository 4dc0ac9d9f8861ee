"""`tidings inbox`: what came in, in which state, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column

group = typer.Typer(help="The inbox: what people said, and what came of it.", no_args_is_help=True)

InboxMessageId = Annotated[str, argument("ID", "The message's id.")]


@command(
    group, "list", epilog=examples("tidings inbox list --state failed", "tidings inbox list --source crew")
)
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[
        str | None,
        option("--state", "-s", "STATE", "received, pending, processing, done, failed, expired or skipped."),
    ] = None,
    source: Annotated[str | None, option("--source", "NAME", "Only of this source.")] = None,
    conversation: Annotated[
        str | None, option("--conversation", "NAME", "Only of this conversation.")
    ] = None,
    sender: Annotated[
        str | None, option("--sender", "ID", "Only of this sender, by the platform's id.")
    ] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """What came in, newest first."""
    page = await ask.app.inbound.inbox.page(
        state=state, source=source, conversation=conversation, sender=sender, limit=limit, after=after
    )
    now = ask.desk.clock.now()
    columns = [
        Column("state", lambda row: row["state"], output.state),
        Column.time("said", "sent_at", now),
        Column("conversation", lambda row: row["conversation"]),
        Column("who", lambda row: row["name"] or row["sender"]),
        Column("text", lambda row: row["text"], _said),
        Column("reason", lambda row: row["reason"], spare=True),
        Column("id", lambda row: row["id"], keep=True),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nothing has come in yet")


def _said(row: output.Row) -> str:
    """What was said, or that it was no text; a pipe has it as it is."""
    said: str = row["text"]
    if row["kind"] == "delete":
        return "(a message was deleted)"
    if not said.strip():
        return f"({row['attachments']} files)" if row["attachments"] else "(no text)"
    return f"(edited) {said}" if row["kind"] == "edit" else said


@command(group, epilog=examples("tidings inbox show ID"))
async def show(ask: CommandContext, message: InboxMessageId) -> None:
    """One message with its history."""
    row = await ask.app.inbound.inbox.show(message)

    def in_words() -> None:
        known = {name: value for name, value in row.items() if name not in ("history", "raw")}
        output.facts(output.fields(known))
        for step in row["history"]:
            output.say(
                f"{output.spoken(step['at'])}  {step['origin']} → {step['state']}  {step['detail'] or ''}"
            )

    ask.answer(row, in_words)


@command(group, epilog=examples("tidings inbox retry 0198c2f0-…"))
async def retry(ask: CommandContext, message: InboxMessageId) -> None:
    """Start one that failed afresh; take up one that has expired or was skipped."""
    row = await ask.app.inbound.inbox.retry(message)
    ask.answer(row, lambda: output.say((row["id"], "bold"), " is tried again"))


@command(group, epilog=examples("tidings inbox sources"))
async def sources(ask: CommandContext) -> None:
    """How far each source was read, and what is wrong with it."""
    now = ask.desk.clock.now()
    columns = [
        Column("name", lambda row: row["name"], keep=True),
        *Column.plain("kind", "how"),
        Column.time("read", "read_at", now),
        Column("cursor", lambda row: row["cursor"], spare=True),
        Column("failures", lambda row: row["consecutive_failures"], right=True),
        Column("problem", lambda row: row["problem"]),
    ]
    nothing = "no sources are configured; see docs/how-to/inbound-sources.md"
    ask.listing(await ask.app.inbound.inbox.sources(), columns, nothing=nothing)
