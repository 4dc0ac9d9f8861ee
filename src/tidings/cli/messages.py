"""`tidings messages`: list and explain messages; cancel, retry and reschedule them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .options import After, At, In, Limit, MessageId, OfChannel, OfRecipient, Past, Uncertain, option
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.explanation import Explanation

group = typer.Typer(help="Find, explain, cancel, retry and reschedule messages.", no_args_is_help=True)


@command(group, "tidings messages list --state pending --channel phone", name="list")
async def list_(
    ctx: CommandContext,
    *,
    state: Annotated[
        str | None,
        option(
            "STATE",
            "pending, processing, sent, failed, cancelled or expired.",
            complete=shell_completion.one_of("pending", "processing", "sent", "failed", "cancelled", "expired"),
        ),
    ] = None,
    channel: OfChannel = None,
    to: OfRecipient = None,
    unknown: Uncertain = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List messages, newest first."""
    page = await ctx.outbound.messages.page(
        state=state, channel=channel, to=to, unknown=unknown, limit=limit, after=after
    )
    nothing = "no matching messages" if state or channel or to else "no messages yet; send one with: tidings send"
    columns = _columns(ctx.app.clock.now())
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, "tidings messages show 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10")
async def show(ctx: CommandContext, message: MessageId) -> None:
    """Show a message with its times, attempts, history and explanation."""
    row = await ctx.outbound.messages.show(message)
    reason = await ctx.outbound.why(message)
    ctx.answer({**row, "why": reason.answer}, lambda: _print(ctx.app, row, reason))


@command(group, "tidings messages why ID")
async def why(ctx: CommandContext, message: MessageId) -> None:
    """Explain what a message is waiting for, or how it ended."""
    from ..model.time import iso

    reason = await ctx.outbound.why(message)
    if ctx.as_json:
        output.say_json({"id": message, **reason._asdict(), "until": iso(reason.until)})
        return
    output.say(output.readable(reason.answer))
    if reason.remedy:
        output.say((f"what to do: {reason.remedy}", "yellow"))


@command(group, "tidings messages cancel ID")
async def cancel(ctx: CommandContext, message: MessageId) -> None:
    """Cancel a message that has not been sent yet."""
    row = await ctx.outbound.messages.cancel(message)
    is_done = row["answer"] == "cancelled"
    at_work = "is being sent now; it will be cancelled unless this attempt succeeds"
    ctx.done(row, "cancelled" if is_done else at_work)


@command(group, "tidings messages retry ID", "tidings messages retry ID --in 10m")
async def retry(ctx: CommandContext, message: MessageId, *, at: At = None, in_: In = None, past: Past = None) -> None:
    """Retry a failed message with a full set of attempts."""
    row = await ctx.outbound.messages.retry(message, at=_when(ctx.app, {"at": at, "in": in_, "past": past}))
    ctx.done(row, f"is due {_due(ctx.app, row)}")


@command(group, 'tidings messages reschedule ID --at "tomorrow 9am"')
async def reschedule(
    ctx: CommandContext, message: MessageId, *, at: At = None, in_: In = None, past: Past = None
) -> None:
    """Reschedule a pending message."""
    from ..model.errors import Invalid

    when = _when(ctx.app, {"at": at, "in": in_, "past": past})
    if when is None:
        raise Invalid("no time is given", field="at", remedy="add --at WHEN or --in DURATION")
    row = await ctx.outbound.messages.reschedule(message, when)
    ctx.done(row, f"is due {_due(ctx.app, row)}")


def _when(app: App, given: Mapping[str, str | None]) -> int | None:
    from ..outbound.draft_parser import DraftParser

    return DraftParser(now=app.clock.now(), timezone=app.settings.timezone).due(given)


def _due(app: App, row: Row) -> str | None:
    return output.full_time(row["next_attempt_at"], app.settings.timezone, app.clock.now())


def _columns(now: int) -> list[Column]:
    return [
        *Column.plain("id:keep", "state:colored"),
        Column("when", _moment, lambda row: output.relative_time(_moment(row), now)),
        *Column.plain("channel:spare", "to", "attempts:right,spare"),
        Column("text", lambda row: row["text"] or row["data"]),
    ]


def _moment(row: Row) -> str | None:
    """Return the time of the next attempt or, if there is none, of the last change."""
    found: str | None = row["next_attempt_at"] or row["changed_at"]
    return found


_TIMES = (
    "accepted=accepted_at", "scheduled=scheduled_at", "next attempt=next_attempt_at", "first attempt=executed_at",
    "last attempt=last_attempt_at", "sent=sent_at", "failed=failed_at",
)  # fmt: skip


def _print(app: App, row: Row, reason: Explanation) -> None:
    timezone, now = app.settings.timezone, app.clock.now()
    lane = app.lanes.get(row["channel"])
    is_open = row["state"] in ("pending", "processing")
    most = row["max_attempts"] or (lane.policy.rule.max_attempts if lane else None)
    output.facts(
        [
            *output.fields(row, "id"),
            ("state", row["state"], output.state(row)),
            ("why", reason.answer, None),
            ("what to do", reason.remedy, None),
            ("to", row["to"], f"{output.flat(row['to'])} on {row['channel']}"),
            ("channel", row["channel"], ""),
            *output.fields(row, "subject", "text", "data"),
            *output.times(row, timezone, now, *_TIMES),
            ("expires", row["expires_at"], output.full_time(row["expires_at"], timezone, now) if is_open else ""),
            ("attempts", row["attempts"], f"{row['attempts']} of {most}" if most else None),
            *output.fields(row, "priority", "ordering_key", "category", "error"),
            ("uncertain", row["unknown"], "yes: it may have been sent more than once" if row["unknown"] else ""),
            *output.fields(row, "node=holder", "receipt", "delivery"),
        ]
    )
    output.say()
    columns = [
        Column("time", lambda line: line["at"], lambda line: _stamp(line["at"], timezone), keep=True),
        *Column.plain("from"),
        Column("to", lambda line: line["to"], lambda line: output.state({"state": line["to"]})),
        *Column.plain("attempt:right"),
        Column("node", lambda line: line["node"], lambda line: line["node_name"] or output.flat(line["node"])),
        *Column.plain("category", "detail:keep"),
    ]
    lines = [*row["history"], *map(_receipt_line, row["receipts"])]
    output.listing(lines, columns, nothing="no history yet")


def _stamp(iso_time: str, timezone: Any) -> str:
    """Return a time in milliseconds, precise enough to read off the duration of an attempt."""
    local = datetime.fromisoformat(iso_time).astimezone(timezone)
    return f"{local:%a %d %b %H:%M:%S}.{local.microsecond // 1000:03} {local:%Z}"


def _receipt_line(fact: Row) -> Row:
    """Return a delivery receipt as a line of the history."""
    line = {
        "from": "sent",
        "to": fact["what"],
        "attempt": None,
        "node": None,
        "node_name": None,
        "detail": fact["reason"],
    }
    return {**fact, **line}
