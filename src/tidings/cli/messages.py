"""`tidings messages`: find messages, see what became of them and why, change what waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, InDoubt, Limit, MessageId, OfChannel, OfRecipient, option
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.explanation import Explanation

group = typer.Typer(
    help="Find messages, see why they stand where they stand, change them.", no_args_is_help=True
)

When = Annotated[str | None, option("WHEN", "ISO 8601 with its zone, or words: 'tomorrow 9am'.")]
Length = Annotated[str | None, option("--in", "LENGTH", "How long from now: 10s, 5m, 2h.")]


@command(group, "list", epilog=examples("tidings messages list --state pending --channel phone"))
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[
        str | None,
        option(
            "STATE",
            "pending, processing, sent, failed, cancelled or expired.",
            complete=shell_completion.one_of(
                "pending", "processing", "sent", "failed", "cancelled", "expired"
            ),
        ),
    ] = None,
    channel: OfChannel = None,
    to: OfRecipient = None,
    unknown: InDoubt = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Messages, newest first."""
    page = await ask.desk.messages.page(
        state=state, channel=channel, to=to, unknown=unknown, limit=limit, after=after
    )
    nothing = "no such messages" if state or channel or to else "no messages yet; send one: tidings send"
    columns = _columns(ask.app.clock.now())
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, epilog=examples("tidings messages show 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10"))
async def show(ask: CommandContext, message: MessageId) -> None:
    """One message: times, tries, whole history, and why."""
    row = await ask.desk.messages.show(message)
    reason = await ask.desk.why(message)
    ask.answer({**row, "why": reason.answer}, lambda: _print(ask.app, row, reason))


@command(group, epilog=examples("tidings messages why ID"))
async def why(ask: CommandContext, message: MessageId) -> None:
    """What a message waits for, or what became of it."""
    from ..model.time import iso

    reason = await ask.desk.why(message)
    if ask.as_json:
        output.say_json({"id": message, **reason._asdict(), "until": iso(reason.until)})
        return
    output.say(output.spoken(reason.answer))
    if reason.remedy:
        output.say((f"what to do: {reason.remedy}", "yellow"))


@command(group, epilog=examples("tidings messages cancel ID"))
async def cancel(ask: CommandContext, message: MessageId) -> None:
    """Cancel a message that has not been sent yet."""
    row = await ask.desk.messages.cancel(message)
    is_done = row["answer"] == "cancelled"
    at_work = "is being sent this moment: it will end as cancelled unless this attempt sends it"
    ask.done(row, "cancelled" if is_done else at_work)


@command(group, epilog=examples("tidings messages retry ID", "tidings messages retry ID --in 10m"))
async def retry(
    ask: CommandContext,
    message: MessageId,
    *,
    at: When = None,
    in_: Length = None,
) -> None:
    """Start a failed message afresh, with all its tries."""
    row = await ask.desk.messages.retry(message, at=_when(ask.app, {"at": at, "in": in_}))
    ask.done(row, f"goes out {_echo(ask.app, row)}")


@command(group, epilog=examples('tidings messages reschedule ID --at "tomorrow 9am"'))
async def reschedule(
    ask: CommandContext,
    message: MessageId,
    *,
    at: When = None,
    in_: Length = None,
) -> None:
    """Give a message that waits another time."""
    from ..model.errors import Invalid

    when = _when(ask.app, {"at": at, "in": in_})
    if when is None:
        raise Invalid("no time is given", field="at", remedy="say when with --at WHEN or --in LENGTH")
    row = await ask.desk.messages.reschedule(message, when)
    ask.done(row, f"goes out {_echo(ask.app, row)}")


def _when(app: App, given: Mapping[str, str | None]) -> int | None:
    from ..outbound.draft_parser import DraftParser

    return DraftParser(now=app.clock.now(), timezone=app.settings.timezone).when(given)


def _echo(app: App, row: Row) -> str | None:
    return output.full_time(row["next_attempt_at"], app.settings.timezone, app.clock.now())


def _columns(now: int) -> list[Column]:
    return [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", lambda row: row["state"], output.state),
        Column("when", _moment, lambda row: output.relative_time(_moment(row), now)),
        Column("channel", lambda row: row["channel"], spare=True),
        Column("to", lambda row: row["to"]),
        Column("attempts", lambda row: row["attempts"], right=True, spare=True),
        Column("text", lambda row: row["text"] or row["data"]),
    ]


def _moment(row: Row) -> str | None:
    """The time that matters in this state: the next attempt of what waits, else the last change."""
    found: str | None = row["next_attempt_at"] or row["changed_at"]
    return found


_TIMES = {
    "accepted": "accepted_at",
    "scheduled": "scheduled_at",
    "next try": "next_attempt_at",
    "first try": "executed_at",
    "last try": "last_attempt_at",
    "sent": "sent_at",
    "failed": "failed_at",
}


def _print(app: App, row: Row, reason: Explanation) -> None:
    timezone, now = app.settings.timezone, app.clock.now()
    lane = app.lanes.get(row["channel"])
    is_open = row["state"] in ("pending", "processing")
    most = row["max_attempts"] or (lane.policy.rule.max_attempts if lane else None)
    output.facts(
        [
            ("id", row["id"], None),
            ("state", row["state"], output.state(row)),
            ("why", reason.answer, None),
            ("what to do", reason.remedy, None),
            ("to", row["to"], f"{output.flat(row['to'])} on {row['channel']}"),
            ("channel", row["channel"], ""),
            *output.fields(row, "subject", "text", "data"),
            *(
                (name, row[field], output.full_time(row[field], timezone, now))
                for name, field in _TIMES.items()
            ),
            (
                "expires",
                row["expires_at"],
                output.full_time(row["expires_at"], timezone, now) if is_open else "",
            ),
            ("attempts", row["attempts"], f"{row['attempts']} of {most}" if most else None),
            *output.fields(row, "priority", "ordering_key", "category", "error"),
            ("in doubt", row["unknown"], "yes: perhaps sent more than once" if row["unknown"] else ""),
            ("held by", row["holder"], None),
            *output.fields(row, "receipt", "delivery"),
        ]
    )
    output.say()
    columns = [
        Column("time", lambda line: line["at"], lambda line: _stamp(line["at"], timezone), keep=True),
        Column("from", lambda line: line["from"]),
        Column("to", lambda line: line["to"], lambda line: output.state({"state": line["to"]})),
        Column("attempt", lambda line: line["attempt"], right=True),
        Column(
            "node", lambda line: line["node"], lambda line: line["node_name"] or output.flat(line["node"])
        ),
        Column("category", lambda line: line["category"]),
        Column("detail", lambda line: line["detail"], keep=True),
    ]
    lines = [*row["history"], *map(_told, row["receipts"])]
    output.listing(lines, columns, as_json=False, nothing="nothing has happened to it yet")


def _stamp(iso_time: str, timezone: Any) -> str:
    """To the millisecond: how long an attempt took can be read off."""
    there = datetime.fromisoformat(iso_time).astimezone(timezone)
    return f"{there:%a %d %b %H:%M:%S}.{there.microsecond // 1000:03} {there:%Z}"


def _told(fact: Row) -> Row:
    """What the provider told later, as a line of the history."""
    line = {
        "from": "sent",
        "to": fact["what"],
        "attempt": None,
        "node": None,
        "node_name": None,
        "detail": fact["reason"],
    }
    return {**fact, **line}
