"""`tidings broadcasts`: create, start, pause, resume, cancel, retry and watch broadcasts."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from . import files, output, shell_completion
from .commands import CommandContext, command
from .options import (
    After,
    At,
    In,
    InputFile,
    InputFormat,
    Key,
    Limit,
    Past,
    Var,
    argument,
    channel_option,
    drop_none,
    option,
    parse_json,
    parse_pairs,
)
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.contacts.uploads import UploadFormat

group = typer.Typer(help="Send one message to many recipients.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "Broadcast id.", complete=shell_completion.broadcasts)]
Reason = Annotated[str | None, option("--reason", "TEXT", "Reason, shown with the broadcast.")]
Expect = Annotated[int | None, option("--expect", "N", "Reject the file unless it has N rows.")]
_TIMES = ("accepted", "scheduled", "frozen", "started", "paused", "ended")


@command(
    group,
    'tidings broadcasts create --channel phone --text "hello" --to ada --to bob',
    "tidings broadcasts create --channel phone --template flood --file people.csv --per-second 50",
    'tidings broadcasts create --channel phone --list all --text "9am?" --at "9am" --recipient-timezone',
    fast=True,
)
async def create(
    ctx: CommandContext,
    *,
    channel: Annotated[str, channel_option("Channel to send on.")],
    to: Annotated[list[str] | None, option("RECIPIENT", "Recipient. Repeatable.")] = None,
    file: Annotated[str | None, option("FILE", "CSV or NDJSON file of recipients, or - for stdin.")] = None,
    list_: Annotated[
        str | None, option("--list", "NAME", "List of contacts to send to.", complete=shell_completion.lists)
    ] = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "Message text.")] = None,
    subject: Annotated[str | None, option("TEXT", "Subject, for channels that have one.")] = None,
    data: Annotated[str | None, option("JSON", "JSON object with channel-specific content.")] = None,
    template: Annotated[
        str | None,
        option("--template", "NAME", "Render this template instead of a text.", complete=shell_completion.templates),
    ] = None,
    var: Var = None,
    name: Annotated[str | None, option("TEXT", "Display name.")] = None,
    xref: Annotated[str | None, option("KEY", "Key that groups broadcasts in reports.")] = None,
    manual: Annotated[bool, typer.Option("--manual", help="Do not start before `tidings broadcasts trigger`.")] = False,
    at: At = None,
    in_: In = None,
    past: Past = None,
    max_attempts: Annotated[int | None, option("N", "Attempts per recipient, including the first.")] = None,
    attempt_interval: Annotated[float | None, option("MINUTES", "Minutes between two attempts.")] = None,
    per_second: Annotated[float | None, option("N", "Maximum first attempts per second.")] = None,
    spread: Annotated[float | None, option("SECONDS", "Add a random delay (jitter) of up to 10 seconds.")] = None,
    error_limit: Annotated[float | None, option("PERCENT", "Pause when more recipients have failed.")] = None,
    canary: Annotated[int | None, option("N", "Send to N recipients first, then pause until `resume`.")] = None,
    quiet_hours: Annotated[
        str | None, option("22:00-07:00", "Do not send in these hours of the recipient's local time.")
    ] = None,
    timezone: Annotated[str | None, option("NAME", "Time zone for --at and for recipients without one.")] = None,
    recipient_timezone: Annotated[
        bool, typer.Option("--recipient-timezone", help="Apply --at in each recipient's time zone.")
    ] = False,
    priority: Annotated[int | None, option("0-9", "0 is sent first.")] = None,
    webhook: Annotated[str | None, option("URL", "URL to notify when it ends.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip invalid rows instead of rejecting the file.")
    ] = False,
    format_: InputFormat = None,
    expect: Expect = None,
    key: Key = None,
) -> None:
    """Create a broadcast. It starts immediately unless --at, --in or --manual is given."""
    from ..model.errors import CallerError, Invalid

    if not (to or file or list_):
        raise Invalid("no recipients are given", field="to", remedy="add --to, --file or --list")
    if "{{" in (text or ""):
        output.warn("{{ in --text is sent literally; for variables, use a template: tidings templates add")
    body = {
        "channel": channel, "addresses": to or None, "list": list_, "text": text, "subject": subject,
        "data": parse_json(data, "--data"), "template": template,
        "variables": parse_pairs(var, "--var") or None, "name": name, "xref": xref,
        "trigger": "MANUAL" if manual else None, "at": at, "in": in_, "past": past, "maxAttempts": max_attempts,
        "attemptIntervalMinutes": attempt_interval, "per_second": per_second, "spread": spread,
        "error_limit": error_limit, "canary": canary, "quiet_hours": _quiet_hours(quiet_hours),
        "timezone": timezone, "recipient_timezone": recipient_timezone or None, "priority": priority,
        "webhook": webhook, "skip_bad": skip_bad or None, "recipients": "upload" if file else None,
    }  # fmt: skip
    given = drop_none(**body)
    read_as = None if file is None else files.format_of(file, format_)
    with nullcontext() if file is None else files.opened(file) as source:
        made = await ctx.outbound.broadcast_creator.create(given, key=key)
        row = made.answer
        if made.replayed:
            row = await ctx.outbound.broadcasts.show(row["id"])
        if source is not None and read_as is not None and row["state"] == "loading":
            if not ctx.as_json:
                output.say(("loading ", "dim"), row["id"])
            try:
                row = await _fill(ctx, row["id"], source, read_as, expect)
            except CallerError as error:
                if not made.replayed:  # the upload of an earlier call may still be running
                    await ctx.outbound.broadcast_creator.withdraw(row["id"], reason=error.problem, key=key)
                raise
    _made(row, as_json=ctx.as_json)


@command(group, "tidings broadcasts upload ID people.csv --expect 12000", fast=True)
async def upload(
    ctx: CommandContext, broadcast: Id, file: InputFile, *, format_: InputFormat = None, expect: Expect = None
) -> None:
    """Upload recipients to a broadcast that is loading. An interrupted upload continues where it stopped."""
    read_as = files.format_of(file, format_)
    with files.opened(file) as source:
        row = await _fill(ctx, broadcast, source, read_as, expect)
    _made(row, as_json=ctx.as_json)


async def _fill(ctx: CommandContext, id_: str, file: BinaryIO, read_as: UploadFormat, expect: int | None) -> Row:
    from ..outbound.broadcasts.recipient_parser import ADDRESS_COLUMNS
    from ..outbound.contacts.uploads import read_rows

    settings = ctx.app.settings
    with files.progress(file, is_shown=not ctx.as_json) as show:
        found = read_rows(
            files.pieces(file, show), read_as, largest=3 * settings.max_body + 16_384, most_lines=settings.max_bulk,
            required=ADDRESS_COLUMNS,
        )  # fmt: skip
        return await ctx.outbound.broadcast_creator.upload(id_, found, expected=expect)


@command(group, "tidings broadcasts list", "tidings broadcasts list --state paused", name="list")
async def list_(
    ctx: CommandContext,
    *,
    state: Annotated[str | None, option("NAME", "Filter by state.")] = None,
    xref: Annotated[str | None, option("KEY", "Filter by xref.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List broadcasts with their counts, newest first."""
    page = await ctx.outbound.broadcasts.page(state=state, xref=xref, limit=limit, after=after)
    first = Column.plain("id:keep", "state:colored", "accepted=accepted_at:time", "channel:spare", "total:right")
    columns = [*first, *count_columns(), *Column.plain("name")]
    ctx.listing(page.items, columns, more=page.next, nothing="no broadcasts")


@command(group, "tidings broadcasts show ID")
async def show(ctx: CommandContext, broadcast: Id) -> None:
    """Show a broadcast with its options, times and exact counts."""
    row = await ctx.outbound.broadcasts.show(broadcast)
    ctx.answer(row, lambda: _print(ctx.app, row))


@command(group, "tidings broadcasts trigger ID")
async def trigger(ctx: CommandContext, broadcast: Id) -> None:
    """Start a broadcast now. No effect if it has already started."""
    _moved(ctx, await ctx.outbound.broadcasts.trigger(broadcast), "started")


@command(group, 'tidings broadcasts pause ID --reason "wrong date in the text"')
async def pause(ctx: CommandContext, broadcast: Id, *, reason: Reason = None) -> None:
    """Pause a broadcast. Messages that are being sent are finished."""
    _moved(ctx, await ctx.outbound.broadcasts.pause(broadcast, **drop_none(reason=reason)), "paused")


@command(group, "tidings broadcasts resume ID")
async def resume(ctx: CommandContext, broadcast: Id) -> None:
    """Resume after a pause, a canary or an error limit."""
    _moved(ctx, await ctx.outbound.broadcasts.resume(broadcast), "resumed")


@command(group, 'tidings broadcasts cancel ID --reason "the water is back"')
async def cancel(ctx: CommandContext, broadcast: Id, *, reason: Reason = None) -> None:
    """Cancel a broadcast and its pending messages."""
    _moved(ctx, await ctx.outbound.broadcasts.cancel(broadcast, **drop_none(reason=reason)), "cancelled")


@command(group, "tidings broadcasts retry ID", "tidings broadcasts retry ID --uncertain")
async def retry(
    ctx: CommandContext,
    broadcast: Id,
    *,
    uncertain: Annotated[
        bool, typer.Option("--uncertain", help="Also retry uncertain messages, which may then arrive twice.")
    ] = False,
) -> None:
    """Retry the failed messages with a full set of attempts."""
    _moved(ctx, await ctx.outbound.broadcasts.retry(broadcast, unknown=uncertain), "retrying its failed messages")


@command(group, "tidings broadcasts rate ID 20", "tidings broadcasts rate ID none")
async def rate(
    ctx: CommandContext,
    broadcast: Id,
    per_second: Annotated[str, typer.Argument(metavar="N", help="First attempts per second, or none.")],
) -> None:
    """Change the rate of a running broadcast; none removes the limit."""
    from ..model.errors import Invalid

    try:
        body = {"per_second": None if per_second == "none" else float(per_second)}
    except ValueError:
        raise Invalid(f"{per_second!r} is not a number", field="per_second", remedy="give a number, or none") from None
    _moved(ctx, await ctx.outbound.broadcasts.change(broadcast, body), "has a new rate")


@command(group, "tidings broadcasts watch ID")
async def watch(ctx: CommandContext, broadcast: Id) -> int:
    """Show the progress of a broadcast until it ends. Exit code 1 unless it completes."""
    from .broadcast_progress import follow

    row = await follow(ctx.outbound, broadcast, as_json=ctx.as_json)
    return 0 if row["state"] == "completed" else 1


def _moved(ctx: CommandContext, row: Row, words: str) -> None:
    ctx.answer(row, lambda: output.say((row["id"], "bold"), f" {words}: ", _tally(row)))


def people(count: int) -> str:
    """Return a number of recipients in words."""
    return f"{count:,} recipient{'' if count == 1 else 's'}"


def _made(row: Row, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
        return
    output.say((row["id"], "bold"), f" {row['state']}: {people(row['total'])}")
    for word, label in (("duplicates", "duplicate"), ("refused", "invalid row")):
        if (number := row[word]) and "samples" in row:
            sample = row["samples"][word][:5]
            rows = ", ".join(str(one["row"]) for one in sample) + (" …" if number > len(sample) else "")
            skipped = f"{number:,} {label}{'' if number == 1 else 's'} skipped (row {rows})"
            output.say((skipped, "yellow"))


def _print(app: App, row: Row) -> None:
    timezone, now = app.settings.timezone, app.clock.now()
    content = row["content"] or {}
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], output.state(row)),
            *output.fields(row, "reason", "channel", "trigger", "xref"),
            ("text", content.get("text"), None),
            *output.fields(row, "template"),
            *output.times(row, timezone, now, *(f"{name}={name}_at" for name in _TIMES)),
            ("options", row["options"], ", ".join(f"{k} {output.flat(v)}" for k, v in row["options"].items())),
            ("total", row["total"], f"{row['total']:,}"),
            *((word, n, f"{n:,}" if n else "") for word, n in row["counts"].items()),
            ("duplicates", row["duplicates"], f"{row['duplicates']:,}" if row["duplicates"] else ""),
            ("rejected", row["refused"], f"{row['refused']:,}" if row["refused"] else ""),
            ("actions", ", ".join(row["actions"]), None),
        ]
    )


def count_columns() -> list[Column]:
    """Return the columns of the counts."""
    return [
        Column("sent", lambda row: row["counts"]["sent"], right=True),
        Column("failed", lambda row: row["counts"]["failed"] + row["counts"]["unknown"], right=True),
        Column("open", lambda row: row["counts"]["waiting"] + row["counts"]["processing"], right=True),
    ]


def _tally(row: Row) -> str:
    counted = [f"{n:,} {word}" for word, n in row["counts"].items() if n]
    return f"{', '.join(counted) or 'no recipients'} of {row['total']:,}"


def _quiet_hours(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    begin, _, end = text.partition("-")
    return {"from": begin.strip(), "to": end.strip()}
