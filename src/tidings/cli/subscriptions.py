"""`tidings subscriptions`: signed webhooks for events."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Key, Limit, argument, option
from .output import Column, Row

group = typer.Typer(help="Subscribe URLs to events, delivered as signed webhooks.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "Subscription id.")]
Events = Annotated[
    list[str] | None, option("--events", "-e", "TYPE", "Event type, such as message.sent, message.* or *. Repeatable.")
]
Url = Annotated[str | None, option("--url", "URL", "URL that events are posted to.")]


@command(group, "tidings subscriptions add --url https://example.com/hooks -e 'message.*' -e broadcast.completed")
async def add(ctx: CommandContext, *, url: Url = None, events: Events = None, key: Key = None) -> None:
    """Add a subscription. Its signing secret is shown only once."""
    made = await ctx.outbound.subscriptions.add({"url": url, "events": events or None}, key=key)
    _with_secret(ctx, made.answer)


@command(group, "tidings subscriptions list", name="list")
async def list_(ctx: CommandContext, *, limit: Limit = 20, after: After = None) -> None:
    """List subscriptions with their problems, newest first."""
    page = await ctx.outbound.subscriptions.page(limit=limit, after=after)
    columns = [
        *Column.plain("id:keep"),
        Column("state", _state),
        Column("events", lambda row: ",".join(row["events"])),
        *Column.plain("url:keep", "problem"),
    ]
    nothing = "no subscriptions yet; see: tidings subscriptions add --help"
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, "tidings subscriptions show ID")
async def show(ctx: CommandContext, id_: Id) -> None:
    """Show a subscription."""
    row = await ctx.outbound.subscriptions.show(id_)
    if ctx.as_json:
        output.say_json(row)
        return
    timezone, now = ctx.app.settings.timezone, ctx.app.clock.now()
    output.facts(
        [
            *output.fields(row, "id"),
            ("state", _state(row), None),
            *output.fields(row, "url"),
            ("events", ", ".join(row["events"]), None),
            *output.fields(row, "problem"),
            *output.times(row, timezone, now, "failing_since", "created=created_at", "changed=changed_at"),
        ]
    )


@command(group, "tidings subscriptions edit ID -e 'message.failed' -e 'message.expired'")
async def edit(ctx: CommandContext, id_: Id, *, url: Url = None, events: Events = None) -> None:
    """Change the URL or the events."""
    await _edit(ctx, id_, {"url": url, "events": events or None}, "changed")


@command(group, "tidings subscriptions pause ID")
async def pause(ctx: CommandContext, id_: Id) -> None:
    """Pause a subscription. Events in the meantime are not delivered later."""
    await _edit(ctx, id_, {"active": False}, "paused")


@command(group, "tidings subscriptions resume ID")
async def resume(ctx: CommandContext, id_: Id) -> None:
    """Resume a subscription, including one that was disabled after days of failures."""
    await _edit(ctx, id_, {"active": True}, "resumed")


@command(group, "tidings subscriptions rotate ID")
async def rotate(ctx: CommandContext, id_: Id) -> None:
    """Rotate the signing secret, shown only once. Events are signed with both secrets for a day."""
    _with_secret(ctx, await ctx.outbound.subscriptions.rotate(id_))


@command(group, "tidings subscriptions test ID")
async def test(ctx: CommandContext, id_: Id) -> None:
    """Send the event subscription.test."""
    row = await ctx.outbound.subscriptions.test(id_)
    ctx.done(row, "will receive the event subscription.test")


@command(group, "tidings subscriptions remove ID")
async def remove(ctx: CommandContext, id_: Id) -> None:
    """Delete a subscription. Events on their way to it are skipped."""
    await ctx.outbound.subscriptions.remove(id_)
    ctx.done({"id": id_, "removed": True}, "deleted")


async def _edit(ctx: CommandContext, id_: str, change: Row, text: str) -> None:
    ctx.done(await ctx.outbound.subscriptions.edit(id_, dict(change)), text)


def _with_secret(ctx: CommandContext, row: Row) -> None:
    ctx.answer(row, lambda: output.facts(output.fields(row, "id", "url", "secret")))
    if output.on_terminal() and not ctx.as_json:
        output.say(("save the secret now: it will not be shown again", "yellow"))


def _state(row: Row) -> str:
    if not row["active"]:
        return "off"
    return "failing" if row["failing_since"] else "on"
