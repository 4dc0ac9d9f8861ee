"""`tidings messages`: find messages, see what became of them and why, change what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output
from .options import After, AsJson, ConfigFile, Database, Limit, MessageId, OfChannel
from .output import Column, Row

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.why import Why

group = typer.Typer(
    help="Find messages, see why they stand where they stand, change them.", no_args_is_help=True
)


@group.command("list", epilog="Example: tidings messages list --state pending --channel phone")
def list_(
    *,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="pending, processing, sent, failed, cancelled or expired."),
    ] = None,
    channel: OfChannel = None,
    to: Annotated[str | None, typer.Option(metavar="WHO", help="Only to this recipient.")] = None,
    unknown: Annotated[
        bool | None,
        typer.Option("--in-doubt/--certain", help="Only those that may have gone out, or the others."),
    ] = None,
    limit: Limit = 20,
    after: After = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Messages, newest first."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            page = await app.messages.page(
                state=state, channel=channel, to=to, unknown=unknown, limit=limit, after=after
            )
            nothing = "no messages" if state or channel or to else "no messages yet; send one: tidings send"
            columns = _columns(app.clock.now())
            output.listing(page.items, columns, as_json=as_json, more=page.next, nothing=nothing)

    engine.run(work())


@group.command(epilog="Example: tidings messages show 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10")
def show(
    message: MessageId, as_json: AsJson = False, database: Database = None, config: ConfigFile = None
) -> None:
    """One message: its times, its tries, its whole history, and why it stands where it stands."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            row = await app.messages.show(message)
            reason = await explain(app, message)
            if as_json:
                output.say_json({**row, "why": reason.answer})
            else:
                _print(app, row, reason)

    engine.run(work())


@group.command()
def why(
    message: MessageId, as_json: AsJson = False, database: Database = None, config: ConfigFile = None
) -> None:
    """What a message is waiting for, or what became of it, in one sentence."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            reason = await explain(app, message)
            if as_json:
                from ..model.time import iso

                output.say_json({"id": message, **reason._asdict(), "until": iso(reason.until)})
                return
            output.say(reason.answer)
            if reason.remedy:
                output.say((f"what to do: {reason.remedy}", "yellow"))

    engine.run(work())


@group.command()
def cancel(
    message: MessageId, as_json: AsJson = False, database: Database = None, config: ConfigFile = None
) -> None:
    """Cancel a message that has not been sent yet."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            row = await app.messages.cancel(message)
            if row["answer"] == "cancelled":
                _answer(row, "cancelled", as_json=as_json)
            else:
                text = "is being sent this moment: it will end as cancelled unless this attempt sends it"
                _answer(row, text, as_json=as_json)

    engine.run(work())


@group.command()
def retry(
    message: MessageId,
    *,
    at: Annotated[str | None, typer.Option(metavar="WHEN", help="A time; without it, now.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Start a failed message afresh, with all its tries."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            row = await app.messages.retry(message, at=None if at is None else _when(app, at))
            _answer(row, f"goes out {_echo(app, row)}", as_json=as_json)

    engine.run(work())


@group.command(epilog='Example: tidings messages reschedule ID --at "tomorrow 9am"')
def reschedule(
    message: MessageId,
    *,
    at: Annotated[str, typer.Option(metavar="WHEN", help="ISO 8601 with its zone, or words: 'in 10 min'.")],
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Give a message that waits another time."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            row = await app.messages.reschedule(message, _when(app, at))
            _answer(row, f"goes out {_echo(app, row)}", as_json=as_json)

    engine.run(work())


async def explain(app: App, message: str) -> Why:
    """Why one message stands where it stands."""
    from ..outbound.why import why

    row = await app.messages.find(message)
    return await why(app.store, row, await app.store.read("history_of", task=row["task"]))


def _when(app: App, text: str) -> int:
    from ..outbound.times import parse_when

    return parse_when(text, now=app.clock.now(), zone=app.settings.zone)


def _echo(app: App, row: Row) -> str | None:
    return output.full(row["next_attempt_at"], app.settings.zone, app.clock.now())


def _answer(row: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        output.say_json(row)
    else:
        output.say((row["id"], "bold"), f" {text}")


def _columns(now: int) -> list[Column]:
    return [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", lambda row: row["state"], output.state),
        Column("when", _moment, lambda row: output.away(_moment(row), now)),
        Column("channel", lambda row: row["channel"]),
        Column("to", lambda row: row["to"]),
        Column("tries", lambda row: row["tries"], right=True),
        Column("text", lambda row: row["text"] or row["data"]),
    ]


def _moment(row: Row) -> str | None:
    """The time that matters in this state: the next attempt of what waits, else the last change."""
    found: str | None = row["next_attempt_at"] or row["changed_at"]
    return found


def _print(app: App, row: Row, reason: Why) -> None:
    zone, now = app.settings.zone, app.clock.now()
    lane = app.lanes.get(row["channel"])
    most = row["max_tries"] or (lane.policy.rule.max_tries if lane else None)
    tries = f"{row['tries']} of {most}" if most else str(row["tries"])
    times = ("accepted_at", "scheduled_at", "next_attempt_at", "executed_at", "last_attempt_at", "sent_at",
             "failed_at", "expires_at")  # fmt: skip
    output.facts(
        [
            ("id", row["id"], None),
            ("state", row["state"], output.state(row)),
            ("why", reason.answer, None),
            ("remedy", reason.remedy, None),
            ("to", row["to"], f"{output.flat(row['to'])} on {row['channel']}"),
            ("channel", row["channel"], ""),
            ("subject", row["subject"], None),
            ("text", row["text"], None),
            ("data", row["data"], None),
            *((_heading(name), row[name], output.full(row[name], zone, now)) for name in times),
            ("tries", row["tries"], tries),
            ("priority", row["priority"], None),
            ("order key", row["order_key"], None),
            ("category", row["category"], None),
            ("error", row["error"], None),
            ("in doubt", row["unknown"], "yes: perhaps sent more than once" if row["unknown"] else ""),
            ("held by", row["holder"], None),
            ("receipt", row["receipt"], None),
        ]
    )
    output.say()
    columns = [
        Column("time", lambda line: line["at"], keep=True),
        Column("from", lambda line: line["from"]),
        Column("to", lambda line: line["to"], lambda line: output.state({"state": line["to"]})),
        Column("try", lambda line: line["try"], right=True),
        Column("node", lambda line: line["node"], right=True),
        Column("category", lambda line: line["category"]),
        Column("detail", lambda line: line["detail"]),
    ]
    history = row["history"]
    output.listing(history, columns, as_json=False, nothing="nothing has happened to it yet")


def _heading(name: str) -> str:
    return {"next_attempt_at": "next try", "executed_at": "first try", "last_attempt_at": "last try"}.get(
        name, name.removesuffix("_at")
    )
