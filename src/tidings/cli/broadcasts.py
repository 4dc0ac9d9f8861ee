"""`tidings broadcasts`: one message for many people; made, filled, started, stopped, counted and exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import files, output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, channel_option, option
from .output import Column, Row

if TYPE_CHECKING:
    from rich.text import Text

    from ..app import App
    from ..outbound.service import OutboundService

group = typer.Typer(help="Broadcasts: one message for many people.", no_args_is_help=True)

Id = Annotated[str, argument("ID", "The broadcast's id.", complete=shell_completion.broadcasts)]
Form = Annotated[str | None, option("--form", "csv|ndjson", "Without it as the file is called.")]
Reason = Annotated[str | None, option("--reason", "TEXT", "Shown with it.")]
Expect = Annotated[int | None, option("--expect", "N", "Refuse it unless there are N rows.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="CSV or NDJSON; - is standard input.")]
STYLES = {
    "loading": "yellow",
    "new": "cyan",
    "pending": "blue",
    "paused": "yellow",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "dim",
    "expired": "yellow",
}
_TIMES = ("accepted", "scheduled", "frozen", "started", "paused", "ended")


@command(
    group,
    epilog=examples(
        'tidings broadcasts create --channel phone --text "hello" --to ada --to bob',
        "tidings broadcasts create --channel phone --template flood --file people.csv --per-second 50",
        'tidings broadcasts create --channel phone --list all --text "9am?" --at "9am" --recipient-timezone',
    ),
    fast=True,
)
async def create(
    ask: CommandContext,
    *,
    channel: Annotated[str, channel_option("The way out.")],
    to: Annotated[list[str] | None, option("--to", "WHO", "An address; as often as needed.")] = None,
    file: Annotated[str | None, option("--file", "FILE", "Addresses as CSV or NDJSON; - is input.")] = None,
    list_: Annotated[
        str | None, option("--list", "NAME", "A list of contacts.", complete=shell_completion.lists)
    ] = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "The words.")] = None,
    subject: Annotated[str | None, option("--subject", "TEXT", "A headline.")] = None,
    data: Annotated[str | None, option("--data", "JSON", "Anything else.")] = None,
    template: Annotated[
        str | None, option("--template", "NAME", "Or a template.", complete=shell_completion.templates)
    ] = None,
    var: Annotated[list[str] | None, option("--var", "NAME=VALUE", "The same for everybody.")] = None,
    name: Annotated[str | None, option("--name", "TEXT", "What people call it.")] = None,
    xref: Annotated[str | None, option("--xref", "KEY", "To group broadcasts by.")] = None,
    manual: Annotated[bool, typer.Option("--manual", help="Wait for `tidings broadcasts trigger`.")] = False,
    at: Annotated[str | None, option("--at", "WHEN", "Start then.")] = None,
    in_: Annotated[str | None, option("--in", "LENGTH", "Start so much later.")] = None,
    max_attempts: Annotated[
        int | None, option("--max-attempts", "N", "Tries, the first one included.")
    ] = None,
    attempt_interval: Annotated[
        float | None, option("--attempt-interval", "MINUTES", "Between two tries.")
    ] = None,
    per_second: Annotated[
        float | None, option("--per-second", "N", "First tries a second at the most.")
    ] = None,
    spread: Annotated[float | None, option("--spread", "SECONDS", "Spread starts over 0 to 10 s.")] = None,
    error_limit: Annotated[
        float | None, option("--error-limit", "PERCENT", "Stop when more have failed.")
    ] = None,
    canary: Annotated[int | None, option("--canary", "N", "Send to N first, then wait for resume.")] = None,
    quiet: Annotated[str | None, option("--quiet", "22:00-07:00", "Hours without a message.")] = None,
    timezone: Annotated[str | None, option("--timezone", "NAME", "Of --at, and of whoever has none.")] = None,
    recipient_timezone: Annotated[
        bool, typer.Option("--recipient-timezone", help="Everybody at that time by their own clock.")
    ] = False,
    priority: Annotated[int | None, option("--priority", "0-9", "0 first, 9 last.")] = None,
    webhook: Annotated[str | None, option("--webhook", "URL", "Told when it has ended.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad rows out; otherwise one refuses all.")
    ] = False,
    form: Form = None,
    expect: Expect = None,
    key: Annotated[str | None, option("--key", "TEXT", "The same key makes it once.")] = None,
) -> None:
    """Make a broadcast; it starts at once unless a time or --manual says otherwise."""
    from ..model.errors import CallerError, Invalid

    if not (to or file or list_):
        raise Invalid("nobody is to get it", field="to", remedy="give --to, --file or --list")
    if "{{" in (text or ""):
        output.warn("{{ is sent as it stands; gaps are filled in a template: tidings templates add")
    body = {
        "channel": channel, "addresses": to or None, "list": list_, "text": text, "subject": subject,
        "data": _json(data), "template": template, "variables": _pairs(var), "name": name, "xref": xref,
        "trigger": "MANUAL" if manual else None, "at": at, "in": in_, "maxAttempts": max_attempts,
        "attemptIntervalMinutes": attempt_interval, "per_second": per_second, "spread": spread,
        "error_limit": error_limit, "canary": canary, "quiet": _quiet(quiet), "timezone": timezone,
        "recipient_timezone": recipient_timezone or None, "priority": priority, "webhook": webhook,
        "skip_bad": skip_bad or None,
        "recipients": "upload" if file is not None else None,
    }  # fmt: skip
    given = {field: value for field, value in body.items() if value is not None}
    made = await ask.desk.broadcast_creator.create(given, key=key)
    row = made.answer
    if made.replayed:
        row = await ask.desk.broadcasts.show(row["id"])
    if file is not None and row["state"] == "loading":
        if not ask.as_json:
            output.say(("loading ", "dim"), row["id"])
        try:
            row = await _fill(ask.app, ask.desk, row["id"], file, form, expect, as_json=ask.as_json)
        except CallerError as error:
            if not made.replayed:  # an earlier call's upload may still go on
                await ask.desk.broadcast_creator.withdraw(row["id"], reason=error.problem, key=key)
            raise
    _made(row, as_json=ask.as_json)


@command(group, epilog=examples("tidings broadcasts upload ID people.csv --expect 12000"), fast=True)
async def upload(
    ask: CommandContext,
    broadcast: Id,
    file: File,
    *,
    form: Form = None,
    expect: Expect = None,
) -> None:
    """Fill a broadcast that is loading; an upload that broke off goes on where it stopped."""
    row = await _fill(ask.app, ask.desk, broadcast, file, form, expect, as_json=ask.as_json)
    _made(row, as_json=ask.as_json)


async def _fill(
    app: App,
    desk: OutboundService,
    id_: str,
    name: str,
    form: str | None,
    expect: int | None,
    *,
    as_json: bool,
) -> Row:
    from ..outbound.contacts.uploads import read_rows

    read_as = files.form_of(name, form)
    with files.opened(name) as file, files.progress(file, is_shown=not as_json) as show:
        largest = 3 * app.settings.max_body + 16_384
        found = read_rows(
            files.pieces(file, show), read_as, largest=largest, most_lines=app.settings.max_bulk
        )
        return await desk.broadcast_creator.upload(id_, found, expected=expect)


@command(group, "list", epilog=examples("tidings broadcasts list", "tidings broadcasts list --state paused"))
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[str | None, option("--state", "NAME", "Only in this state.")] = None,
    xref: Annotated[str | None, option("--xref", "KEY", "Only of this group.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Broadcasts, newest first, with their tally."""
    page = await ask.desk.broadcasts.page(state=state, xref=xref, limit=limit, after=after)
    columns = _columns(ask.desk.clock.now())
    ask.listing(page.items, columns, more=page.next, nothing="no broadcasts")


@command(group, epilog=examples("tidings broadcasts show ID"))
async def show(ask: CommandContext, broadcast: Id) -> None:
    """One broadcast: its options, its times, its exact tally."""
    row = await ask.desk.broadcasts.show(broadcast)
    ask.answer(row, lambda: _print(ask.app, row))


@command(group, epilog=examples("tidings broadcasts trigger ID"))
async def trigger(ask: CommandContext, broadcast: Id) -> None:
    """Start it now; what has started already is left alone."""
    _moved(ask, await ask.desk.broadcasts.trigger(broadcast), "started")


@command(group, epilog=examples('tidings broadcasts pause ID --reason "wrong date in the text"'))
async def pause(ask: CommandContext, broadcast: Id, *, reason: Reason = None) -> None:
    """Start nothing more of it; what is being sent ends as it would."""
    _moved(ask, await ask.desk.broadcasts.pause(broadcast, **_given(reason=reason)), "paused")


@command(group, epilog=examples("tidings broadcasts resume ID"))
async def resume(ask: CommandContext, broadcast: Id) -> None:
    """Go on after a pause, a canary, or a stop by errors."""
    _moved(ask, await ask.desk.broadcasts.resume(broadcast), "goes on")


@command(group, epilog=examples('tidings broadcasts cancel ID --reason "the water is back"'))
async def cancel(ask: CommandContext, broadcast: Id, *, reason: Reason = None) -> None:
    """Give it up: what waits is cancelled."""
    _moved(ask, await ask.desk.broadcasts.cancel(broadcast, **_given(reason=reason)), "cancelled")


@command(group, epilog=examples("tidings broadcasts retry ID", "tidings broadcasts retry ID --uncertain"))
async def retry(
    ask: CommandContext,
    broadcast: Id,
    *,
    unknown: Annotated[
        bool, typer.Option("--uncertain", help="Retry uncertain ones too: they may arrive twice.")
    ] = False,
) -> None:
    """Start its failed ones afresh, with all their tries."""
    _moved(ask, await ask.desk.broadcasts.retry(broadcast, unknown=unknown), "retries its failed ones")


@command(group, epilog=examples("tidings broadcasts rate ID 20", "tidings broadcasts rate ID none"))
async def rate(
    ask: CommandContext,
    broadcast: Id,
    per_second: Annotated[str, typer.Argument(metavar="N", help="First tries a second, or none.")],
) -> None:
    """Another rate while it runs."""
    from ..model.errors import Invalid

    try:
        body = {"per_second": None if per_second == "none" else float(per_second)}
    except ValueError:
        raise Invalid(
            f"{per_second!r} is not a number", field="per_second", remedy="give one, or none"
        ) from None
    _moved(ask, await ask.desk.broadcasts.change(broadcast, body), "has its new rate")


@command(group, epilog=examples("tidings broadcasts watch ID"))
async def watch(ask: CommandContext, broadcast: Id) -> int:
    """Stay until it has ended, and show how far it is."""
    from .broadcast_progress import follow

    row = await follow(ask.desk, broadcast, as_json=ask.as_json)
    return 0 if row["state"] == "completed" else 1


def _moved(ask: CommandContext, row: Row, words: str) -> None:
    ask.answer(row, lambda: output.say((row["id"], "bold"), f" {words}: ", _tally(row)))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def people(count: int) -> str:
    """How many, in words."""
    return f"{count:,} recipient{'' if count == 1 else 's'}"


def _made(row: Row, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
        return
    output.say((row["id"], "bold"), f" {row['state']}: {people(row['total'])}")
    for word, what in (("duplicates", "duplicate"), ("refused", "bad row")):
        if (number := row[word]) and "samples" in row:
            sample = row["samples"][word][:5]
            rows = ", ".join(str(one["row"]) for one in sample) + (" …" if number > len(sample) else "")
            left_out = f"{number:,} {what}{'' if number == 1 else 's'} left out (row {rows})"
            output.say((left_out, "yellow"))


def _print(app: App, row: Row) -> None:
    timezone, now = app.settings.timezone, app.clock.now()
    content = row["content"] or {}
    times = [(name, row[f"{name}_at"]) for name in _TIMES]
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], _state(row)),
            *output.fields(row, "reason", "channel", "trigger", "xref"),
            ("text", content.get("text"), None),
            ("template", row["template"], None),
            *((name, at, output.full_time(at, timezone, now)) for name, at in times),
            (
                "options",
                row["options"],
                ", ".join(f"{k} {output.flat(v)}" for k, v in row["options"].items()),
            ),
            ("total", row["total"], f"{row['total']:,}"),
            *((word, n, f"{n:,}" if n else "") for word, n in row["counts"].items()),
            ("duplicates", row["duplicates"], f"{row['duplicates']:,}" if row["duplicates"] else ""),
            ("refused", row["refused"], f"{row['refused']:,}" if row["refused"] else ""),
            ("you can", ", ".join(row["actions"]), None),
        ]
    )


def _columns(now: int) -> list[Column]:
    return [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", lambda row: row["state"], _state),
        Column.time("accepted", "accepted_at", now),
        Column("channel", lambda row: row["channel"], spare=True),
        Column("total", lambda row: row["total"], right=True),
        *counted(),
        Column("name", lambda row: row["name"]),
    ]


def counted() -> list[Column]:
    """How many ended how."""
    return [
        Column("sent", lambda row: row["counts"]["sent"], right=True),
        Column("failed", lambda row: row["counts"]["failed"] + row["counts"]["unknown"], right=True),
        Column("open", lambda row: row["counts"]["waiting"] + row["counts"]["processing"], right=True),
    ]


def _state(row: Row) -> Text:
    from rich.text import Text

    return Text(row["state"], STYLES.get(row["state"], ""))


def _tally(row: Row) -> str:
    counted = [f"{n:,} {word}" for word, n in row["counts"].items() if n]
    return f"{', '.join(counted) or 'nobody'} of {row['total']:,}"


def _pairs(given: list[str] | None) -> dict[str, str] | None:
    from ..model.errors import Invalid

    if not given:
        return None
    pairs = [entry.partition("=") for entry in given]
    for name, sign, _ in pairs:
        if not name or not sign:
            raise Invalid(f"{name!r} has no value", field="var", remedy="write --var NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _json(text: str | None) -> Any:
    import orjson

    from ..model.errors import Invalid

    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Invalid(
            f"--data is not JSON ({error})", field="data", remedy='write {"name": "value"}'
        ) from None


def _quiet(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    begin, _, end = text.partition("-")
    return {"from": begin.strip(), "to": end.strip()}
