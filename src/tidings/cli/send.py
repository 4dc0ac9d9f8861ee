"""`tidings send`: put messages into the database, whether or not a server runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output, shell_completion
from .command_audit import audited
from .help import examples
from .options import AsJson, ConfigFile, Database, channel_option, option
from .templates import values

if TYPE_CHECKING:
    from ..app import App
    from ..config import Settings
    from ..model.message import Draft

EXAMPLES = examples(
    'tidings send -c phone --to ada --text "hello" --in 10s',
    'tidings send -c phone --to ada --text "good morning" --at "tomorrow 9am"',
    "echo done | tidings send -c phone --to ada --text - --wait",
    "tidings send -c phone --to ada --template welcome --var name=Ada",
    "tidings send --file messages.ndjson --channel phone",
)


def send(
    *,
    channel: Annotated[str | None, channel_option("Which way out: a configured channel.")] = None,
    to: Annotated[str | None, option("WHO", "Who gets it.")] = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "What it says; - reads it.")] = None,
    subject: Annotated[str | None, option("TEXT", "A heading, where the channel has one.")] = None,
    data: Annotated[str | None, option("JSON", "A JSON object to go with it.")] = None,
    template: Annotated[
        str | None,
        option("NAME", "A template, instead of a text of its own.", complete=shell_completion.templates),
    ] = None,
    template_version: Annotated[
        int | None, option("N", "Which version of it; the newest unless given.")
    ] = None,
    var: Annotated[
        list[str] | None, option("--var", "NAME=VALUE", "A value for a gap of the template; repeat it.")
    ] = None,
    at: Annotated[str | None, option("WHEN", "ISO 8601 with its zone, or words: 'tomorrow 9am'.")] = None,
    in_: Annotated[str | None, option("--in", "LENGTH", "How long from now: 10s, 5m, 2h.")] = None,
    priority: Annotated[int | None, option("0-9", "0 goes first; 5 unless given.")] = None,
    ordering_key: Annotated[
        str | None, option("KEY", "Messages of one key go out one at a time, in order.")
    ] = None,
    expires_in: Annotated[
        str | None, option("LENGTH", "How late it may still go out; 24h unless configured.")
    ] = None,
    max_attempts: Annotated[int | None, option("N", "How often to try, the first included.")] = None,
    key: Annotated[str | None, option("KEY", "Idempotency key: the same call again changes nothing.")] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Stay until it is sent or has failed.")] = False,
    file: Annotated[str | None, option("FILE", "Many at once: one JSON object a line; - reads them.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Send a message: now, at a time, or in a while.

    When this command returns, the message is safe in the database. It goes out when it is due and a process
    works (tidings serve). The answer repeats the time in full.
    """
    given: dict[str, Any] = {
        "channel": channel, "to": to, "text": sys.stdin.read().rstrip("\n") if text == "-" else text,
        "subject": subject, "data": _parsed(data), "at": at, "in": in_, "priority": priority,
        "ordering_key": ordering_key, "expires_in": expires_in, "max_attempts": max_attempts,
        "template": template, "template_version": template_version, "variables": values(var) or None,
    }  # fmt: skip
    fields = {name: value for name, value in given.items() if value is not None}
    chosen = engine.settings(config, database)
    if file is not None:
        from .bulk import send_file

        _refuse_wait(wait)
        code = engine.run(send_file(chosen, file, fields, key=key, as_json=as_json))
    else:
        code = engine.run(_send_one(chosen, fields, key=key, wait=wait, as_json=as_json))
    raise typer.Exit(code)


async def _send_one(
    chosen: Settings, fields: dict[str, Any], *, key: str | None, wait: bool, as_json: bool
) -> int:
    from ..kernel.clock import SystemClock

    _read(fields, SystemClock().wall(), chosen)  # what is wrong is said before a file is made
    async with engine.opened(chosen) as app:
        async with audited(app, "messages.accept"):
            accepted = await app.desk.messages.accept(_read(fields, app.clock.now(), chosen), key=key)
        if not as_json:
            await _confirm(app, accepted.id, accepted.at, replayed=accepted.replayed, quiet=wait)
        if wait:
            from .message_progress import follow

            row = await follow(app.desk, accepted.id, as_json=as_json)
            return 0 if row["state"] == "sent" else 1
        if as_json:
            output.say_json({**await app.desk.messages.show(accepted.id), "replayed": accepted.replayed})
    return 0


def _read(fields: dict[str, Any], now: int, chosen: Settings) -> Draft:
    """`keep` lets a repeated call with a key be told by its words: 'in 10s' is another time each time."""
    from ..model.errors import Invalid
    from ..outbound.draft_parser import DraftParser

    for name, remedy in _NEEDED.items():
        if name not in fields:
            raise Invalid(f"--{name} is missing", remedy=remedy, field=name)
    return DraftParser(now=now, timezone=chosen.timezone).draft(fields, keep=True)


_NEEDED = {
    "channel": "say which way it goes; tidings channels list shows them",
    "to": "say who gets it, as the channel names people",
}


async def _confirm(app: App, id_: str, at: int, *, replayed: bool, quiet: bool) -> None:
    """The id and the time in full; for programs, one line with both."""
    from ..inputs.natural_times import describe_time

    when = describe_time(at, app.settings.timezone, now=app.clock.now())
    if not output.on_terminal():
        print(f"{id_}\t{when}", flush=True)
        return
    output.say(("✓ ", "green"), "accepted before as " if replayed else "accepted ", (id_, "bold"))
    output.say("  goes out ", when)
    if not quiet and not await _is_anybody_working(app):
        output.say(("  no process is working yet; start one with: tidings serve", "yellow"))


async def _is_anybody_working(app: App) -> bool:
    """On a file the work lock tells; on a server, the nodes that have not been given up."""
    if app.store.sole_worker:
        return not app.store.may_work()
    return any(node["state"] == "live" for node in await app.store.read("node_list"))


def _parsed(data: str | None) -> Any:
    if data is None:
        return None
    import orjson

    from ..model.errors import Invalid

    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        problem, remedy = f"--data is not JSON ({error})", """write it as '{"name": "value"}'"""
        raise Invalid(problem, remedy=remedy, field="data") from None


def _refuse_wait(wait: bool) -> None:
    if wait:
        from ..model.errors import Invalid

        raise Invalid("--wait follows one message", remedy="leave it out with --file", field="wait")
