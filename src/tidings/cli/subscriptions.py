"""`tidings subscriptions`: who is told of what happens, by signed webhooks."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column, Row

group = typer.Typer(help="Events out: who is told of what, by signed webhooks.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "The subscription's id.")]
Events = Annotated[
    list[str] | None,
    option("--events", "-e", "TYPE", "message.sent, message.*, * …; may be given several times."),
]
Url = Annotated[str | None, option("--url", "URL", "Where events are posted.")]


@command(
    group,
    epilog=examples(
        "tidings subscriptions add --url https://example.com/hooks -e 'message.*' -e broadcast.completed"
    ),
)
async def add(
    ask: CommandContext,
    *,
    url: Url = None,
    events: Events = None,
    key: Annotated[str | None, option("--key", "KEY", "Makes it safe to repeat the command.")] = None,
) -> None:
    """Subscribe. The secret that signs events is shown this once."""
    made = await ask.desk.subscriptions.add({"url": url, "events": events or None}, key=key)
    _with_secret(ask, made.answer)


@command(group, "list", epilog=examples("tidings subscriptions list"))
async def list_(
    ask: CommandContext,
    *,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Subscriptions, newest first, and what is wrong with their receivers."""
    page = await ask.desk.subscriptions.page(limit=limit, after=after)
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", _state),
        Column("events", lambda row: ",".join(row["events"])),
        Column("url", lambda row: row["url"], keep=True),
        Column("problem", lambda row: row["problem"]),
    ]
    nothing = "no subscriptions yet; see: tidings subscriptions add --help"
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, epilog=examples("tidings subscriptions show ID"))
async def show(ask: CommandContext, id_: Id) -> None:
    """One subscription."""
    row = await ask.desk.subscriptions.show(id_)
    if ask.as_json:
        output.say_json(row)
        return
    timezone, now = ask.app.settings.timezone, ask.app.clock.now()
    output.facts(
        [
            ("id", row["id"], None),
            ("state", _state(row), None),
            ("url", row["url"], None),
            ("events", ", ".join(row["events"]), None),
            ("problem", row["problem"], None),
            ("failing since", row["failing_since"], output.full_time(row["failing_since"], timezone, now)),
            ("created", row["created_at"], output.full_time(row["created_at"], timezone, now)),
            ("changed", row["changed_at"], output.full_time(row["changed_at"], timezone, now)),
        ]
    )


@command(group, epilog=examples("tidings subscriptions edit ID -e 'message.failed' -e 'message.expired'"))
async def edit(ask: CommandContext, id_: Id, *, url: Url = None, events: Events = None) -> None:
    """Another address, or other events."""
    await _edit(ask, id_, {"url": url, "events": events or None}, "changed")


@command(group, epilog=examples("tidings subscriptions pause ID"))
async def pause(ask: CommandContext, id_: Id) -> None:
    """Tell it nothing for now; what happens meanwhile is not told later."""
    await _edit(ask, id_, {"active": False}, "is told nothing for now")


@command(group, epilog=examples("tidings subscriptions resume ID"))
async def resume(ask: CommandContext, id_: Id) -> None:
    """Tell it again, also one that was given up because its receiver failed for days."""
    await _edit(ask, id_, {"active": True}, "is told again")


@command(group, epilog=examples("tidings subscriptions rotate ID"))
async def rotate(ask: CommandContext, id_: Id) -> None:
    """A new secret, shown this once. For a day events are signed with both."""
    _with_secret(ask, await ask.desk.subscriptions.rotate(id_))


@command(group, epilog=examples("tidings subscriptions test ID"))
async def test(ask: CommandContext, id_: Id) -> None:
    """Send it the event subscription.test."""
    row = await ask.desk.subscriptions.test(id_)
    ask.done(row, "will get the event subscription.test")


@command(group, epilog=examples("tidings subscriptions remove ID"))
async def remove(ask: CommandContext, id_: Id) -> None:
    """Tell it nothing any more."""
    await ask.desk.subscriptions.remove(id_)
    ask.done({"id": id_, "removed": True}, "removed")


async def _edit(ask: CommandContext, id_: str, change: Row, text: str) -> None:
    ask.done(await ask.desk.subscriptions.edit(id_, dict(change)), text)


def _with_secret(ask: CommandContext, row: Row) -> None:
    ask.answer(row, lambda: output.facts(output.fields(row, "id", "url", "secret")))
    if output.on_terminal() and not ask.as_json:
        output.say(("keep the secret now: it is not shown again", "yellow"))


def _state(row: Row) -> str:
    if not row["active"]:
        return "off"
    return "failing" if row["failing_since"] else "on"
