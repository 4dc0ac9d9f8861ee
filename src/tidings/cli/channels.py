"""`tidings channels`: the ways out, how they stand, pause, resume, test and link."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from . import engine, output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import AsJson, ConfigFile, argument, option
from .output import Column, Row

if TYPE_CHECKING:
    from rich.text import Text

    from ..outbound.sessions.qr_codes import SessionQrCode

group = typer.Typer(help="The ways out: how they stand, pause, resume, test, link.", no_args_is_help=True)

Name = Annotated[str, argument("NAME", "The channel's name.", complete=shell_completion.channels)]


@command(group, "list", epilog=examples("tidings channels list"))
async def list_(ask: CommandContext) -> None:
    """Every channel, and whether it sends."""
    now = ask.app.clock.now()
    columns = [
        Column("name", lambda row: row["name"], keep=True),
        Column("kind", lambda row: row["kind"], lambda row: row["kind"] or "(not configured here)"),
        Column("state", lambda row: row["state"], _state),
        Column.time("until", "blocked_until", now, spare=True),
        Column("breaker", lambda row: row["breaker"]),
        Column("per second", lambda row: row["per_second"], right=True, spare=True),
        Column("if in doubt", lambda row: row["on_unknown"], spare=True),
        Column("reason", _reason),
    ]
    ask.listing(await ask.desk.channels.all(), columns, nothing="no channels")


@command(group, epilog=examples("tidings channels show texts"))
async def show(ask: CommandContext, name: Name) -> None:
    """One channel: how it stands, its limits, and the address that its provider is to call."""
    row = await ask.desk.channels.one(name)
    ask.answer(row, lambda: _facts(row, is_public=ask.app.settings.public_url is not None))


@command(group, epilog=examples('tidings channels pause phone --reason "the provider is down"'))
async def pause(
    ask: CommandContext,
    name: Name,
    *,
    reason: Annotated[str, option("TEXT", "Shown wherever somebody asks why.")] = "paused by hand",
) -> None:
    """Start nothing more on a channel. Its messages wait and spend no attempt."""
    _answer(ask, await ask.desk.channels.pause(name, reason=reason))


@command(group, epilog=examples("tidings channels resume phone"))
async def resume(ask: CommandContext, name: Name) -> None:
    """Let a channel send again: lifts a pause, a wait and an open breaker."""
    _answer(ask, await ask.desk.channels.resume(name))


@group.command(epilog=examples("tidings channels test bot", "tidings channels test bot --json"))
def test(name: Name, *, as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Ask a channel's provider whether the account works. Sends nothing and needs no database.

    The exit code is 1 when it does not work.
    """
    from ..outbound.channel_probes import probe_channel

    async def work() -> bool:
        async with engine.channels(engine.settings(config)) as channels:
            with output.working(f"asking the provider of {name}", is_shown=not as_json):
                trial = await probe_channel(channels, name)
        if as_json:
            output.say_json(trial._asdict())
        else:
            verdict, style = _VERDICTS[trial.works]
            output.say((name, "bold"), f" ({trial.kind}) ", (verdict, style), f": {output.flat(trial.said)}")
            if trial.remedy:
                output.say((f"→ {trial.remedy}", "dim"))
        return trial.works is not False

    if not engine.run(work()):
        raise typer.Exit(1)


@group.command(epilog=examples("tidings channels secret orders https://example.com/hooks"))
def secret(
    name: Name,
    to: Annotated[str, argument("URL", "The receiver's URL, or default.")],
    *,
    tenant: Annotated[str, option("TENANT", "Tenant that sends to it.")] = "default",
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> None:
    """Show the signing secrets of one receiver, newest first. Needs no database."""
    from ..outbound.channels.signing_secrets import endpoint_secrets

    async def work() -> Row:
        async with engine.channels(engine.settings(config)) as channels:
            return dict(endpoint_secrets(channels, name, to, tenant=tenant))

    found = engine.run(work())
    if as_json:
        output.say_json(found)
    else:
        for one in found["secrets"]:
            output.say(one)


@group.command(epilog=examples("tidings channels qr whatsapp"))
def qr(name: Name, *, as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Show the code that links a phone to a channel's session. Needs no database.

    The exit code is 1 when there is nothing to scan, though the session is not connected.
    """
    from ..outbound.sessions import qr_codes

    async def work() -> qr_codes.SessionQrCode:
        async with engine.channels(engine.settings(config)) as channels:
            with output.working(f"asking the session of {name}", is_shown=not as_json):
                return await qr_codes.read_qr_code(channels, name)

    scan = engine.run(work())
    if as_json:
        output.say_json(scan._asdict())
    else:
        _show_code(scan)
    if scan.code is None and scan.link != "connected":
        raise typer.Exit(1)


def _show_code(scan: SessionQrCode) -> None:
    from ..outbound.sessions import qr_codes

    words = scan.link.replace("_", " ")
    output.say((scan.channel, "bold"), " is ", (words, "yellow" if scan.code else ""), f": {scan.reason}")
    if scan.code is not None:
        sys.stdout.write(qr_codes.render_terminal(scan.code, colours=output.on_terminal()))
        output.say(("→ on the phone: WhatsApp, Linked devices, Link a device; the code changes often", "dim"))
    elif scan.link == "logged_out":
        output.say(("→ no code is offered: start the session where it is held, then ask again", "dim"))


_VERDICTS = {True: ("works", "green"), False: ("does not work", "bold red"), None: ("not tested", "yellow")}


def _facts(row: Row, *, is_public: bool) -> None:
    wait = row["per_recipient_s"]
    in_doubt = f"{row['on_unknown']}: {row['why_on_unknown']}" if row["why_on_unknown"] else row["on_unknown"]
    output.facts(
        [
            ("name", row["name"], None),
            ("kind", row["kind"], row["kind"] or "(not configured here)"),
            ("state", row["state"], _state(row)),
            ("reason", _reason(row), None),
            ("session", row["session_state"], None),
            ("until", row["blocked_until"], None),
            *output.fields(row, "breaker", "per_second"),
            ("per recipient", wait, "" if wait is None else f"one in {wait:g} s"),
            ("deadline", row["deadline_s"], f"{row['deadline_s']:g} s"),
            ("policy", row["policy"], None),
            ("if in doubt", row["on_unknown"], in_doubt),
            ("callback", row["callback"], None),
            *[("left alone", one["host"], _left_alone(one)) for one in row["destinations"]],
        ]
    )
    if row["callback"] and not is_public:
        output.say(("the provider must reach that address: set public_url to the one it knows", "yellow"))


def _left_alone(destination: Row) -> str:
    tenant = destination["tenant"]
    whose = "" if tenant == "default" else f" (tenant {tenant})"
    return f"{destination['host']}{whose} until {destination['until']}: {destination['reason']}"


def _answer(ask: CommandContext, row: Row) -> None:
    paused = f" is paused: {row['pause_reason']}" if row["paused"] else " sends again"
    ask.answer(row, lambda: output.say((row["name"], "bold"), paused))


def _reason(row: Row) -> object:
    link = row["session_reason"] if row["session_state"] not in (None, "connected") else None
    return row["pause_reason"] or link or row["block_reason"]


def _state(row: Row) -> Text:
    from rich.text import Text

    return Text(row["state"], "green" if row["state"] == "open" else "yellow")
