"""`tidings send`: accept messages into the database, whether or not an engine is running."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, output, shell_completion
from .command_audit import audited
from .options import (
    AsJson,
    At,
    ConfigFile,
    Database,
    In,
    Key,
    Past,
    Var,
    channel_option,
    drop_none,
    option,
    parse_json,
    parse_pairs,
)

if TYPE_CHECKING:
    from ..app import App
    from ..config import Settings
    from ..model.message import Draft

EXAMPLES = (
    'tidings send -c phone --to ada --text "hello" --in 10s',
    'tidings send -c phone --to ada --text "good morning" --at "tomorrow 9am"',
    "echo done | tidings send -c phone --to ada --text - --wait",
    "tidings send -c phone --to ada --template welcome --var name=Ada",
    "tidings send --file messages.ndjson --channel phone",
)


def send(
    *,
    channel: Annotated[str | None, channel_option("Channel to send on.")] = None,
    to: Annotated[str | None, option("RECIPIENT", "Recipient, such as a phone number or a chat id.")] = None,
    text: Annotated[str | None, option("--text", "-t", "TEXT", "Message text, or - to read it from stdin.")] = None,
    subject: Annotated[str | None, option("TEXT", "Subject, for channels that have one.")] = None,
    data: Annotated[str | None, option("JSON", "JSON object with channel-specific content.")] = None,
    template: Annotated[
        str | None, option("NAME", "Render this template instead of a text.", complete=shell_completion.templates)
    ] = None,
    template_version: Annotated[int | None, option("N", "Version of the template. [newest]")] = None,
    var: Var = None,
    at: At = None,
    in_: In = None,
    past: Past = None,
    priority: Annotated[int | None, option("0-9", "0 is sent first. [5]")] = None,
    ordering_key: Annotated[
        str | None, option("KEY", "Send messages with the same key one at a time, in order.")
    ] = None,
    expires_in: Annotated[
        str | None, option("DURATION", "Expire if not sent this long after the due time. [24h]")
    ] = None,
    max_attempts: Annotated[int | None, option("N", "Attempts, including the first. [from the retry policy]")] = None,
    key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until it is sent or has failed.")] = False,
    file: Annotated[str | None, option("FILE", "Send many: NDJSON with one message per line, or - for stdin.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Send a message: now, at a given time, or after a delay.

    The command returns when the message is committed to the database. A running `tidings serve` sends it when
    it is due. The output repeats the due time in full.
    """
    given = drop_none(
        channel=channel, to=to, text=sys.stdin.read().rstrip("\n") if text == "-" else text, subject=subject,
        data=parse_json(data, "--data"), at=at, past=past, priority=priority, ordering_key=ordering_key,
        expires_in=expires_in, max_attempts=max_attempts, template=template,
        template_version=template_version, variables=parse_pairs(var, "--var") or None,
    )  # fmt: skip
    fields = given if in_ is None else {**given, "in": in_}
    chosen = engine.settings(config, database)
    if file is not None:
        from ..model.errors import Invalid
        from .bulk import send_file

        if wait:
            raise Invalid("--wait is for a single message", remedy="omit it with --file", field="wait")
        code = engine.run(send_file(chosen, file, fields, key=key, as_json=as_json))
    else:
        code = engine.run(_send_one(chosen, fields, key=key, wait=wait, as_json=as_json))
    raise typer.Exit(code)


async def _send_one(chosen: Settings, fields: dict[str, Any], *, key: str | None, wait: bool, as_json: bool) -> int:
    from ..kernel.clock import SystemClock

    _read(fields, SystemClock().wall(), chosen)  # report errors before a database file is created
    async with engine.opened(chosen) as app:
        async with audited(app, "messages.accept"):
            accepted = await app.outbound.messages.accept(_read(fields, app.clock.now(), chosen), key=key)
        if not as_json:
            await _confirm(app, accepted.id, accepted.at, replayed=accepted.replayed, quiet=wait)
        if wait:
            from .message_progress import follow

            row = await follow(app.outbound, accepted.id, as_json=as_json)
            return 0 if row["state"] == "sent" else 1
        if as_json:
            output.say_json({**await app.outbound.messages.show(accepted.id), "replayed": accepted.replayed})
    return 0


def _read(fields: dict[str, Any], now: int, chosen: Settings) -> Draft:
    """Parse the fields. `keep` compares repeated calls by their words: 'in 10s' is a new time in each."""
    from ..model.errors import Invalid
    from ..outbound.draft_parser import DraftParser

    for name, remedy in _NEEDED.items():
        if name not in fields:
            raise Invalid(f"--{name} is missing", remedy=remedy, field=name)
    return DraftParser(now=now, timezone=chosen.timezone).draft(fields, keep=True)


_NEEDED = {"channel": "name a channel; tidings channels list shows them", "to": "name the recipient"}


async def _confirm(app: App, id_: str, at: int, *, replayed: bool, quiet: bool) -> None:
    """Print the id and the due time; in a pipe, both on one line."""
    from ..inputs.natural_times import describe_time

    when = describe_time(at, app.settings.timezone, now=app.clock.now())
    if not output.on_terminal():
        print(f"{id_}\t{when}", flush=True)
        return
    output.say(("✓ ", "green"), "already accepted as " if replayed else "accepted ", (id_, "bold"))
    output.say("  due ", when)
    if not quiet and not await _is_engine_running(app):
        output.say(("  no engine is running; start one with: tidings serve", "yellow"))


async def _is_engine_running(app: App) -> bool:
    """Return whether the work lock of a SQLite file is taken, or a live node exists."""
    if app.store.sole_worker:
        return not app.store.may_work()
    return any(node["state"] == "live" for node in await app.store.read("node_list"))
