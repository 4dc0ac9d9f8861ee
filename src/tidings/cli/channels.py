"""`tidings channels`: state of the channels; pause, resume, test and link them."""

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
    from ..outbound.sessions.qr_codes import SessionQrCode

group = typer.Typer(help="Show, pause, resume, test and link channels.", no_args_is_help=True)

Name = Annotated[str, argument("NAME", "Channel name.", complete=shell_completion.channels)]


@command(group, "tidings channels list", name="list")
async def list_(ctx: CommandContext) -> None:
    """List the channels with their state."""
    columns = [
        *Column.plain("name:keep"),
        Column("kind", lambda row: row["kind"], lambda row: row["kind"] or "(not configured here)"),
        *Column.plain(
            "state:colored", "until=blocked_until:time,spare", "breaker", "per_second:right,spare", "on_unknown:spare"
        ),
        Column("reason", _reason),
    ]
    ctx.listing(await ctx.outbound.channels.all(), columns, nothing="no channels")


@command(group, "tidings channels show texts")
async def show(ctx: CommandContext, name: Name) -> None:
    """Show a channel with its state, limits and callback URL."""
    row = await ctx.outbound.channels.one(name)
    ctx.answer(row, lambda: _facts(row, is_public=ctx.app.settings.public_url is not None))


@command(group, 'tidings channels pause phone --reason "the provider is down"')
async def pause(
    ctx: CommandContext,
    name: Name,
    *,
    reason: Annotated[str, option("TEXT", "Reason, shown with the waiting messages.")] = "paused by hand",
) -> None:
    """Pause a channel in all processes. Its messages wait without using up attempts."""
    _answer(ctx, await ctx.outbound.channels.pause(name, reason=reason))


@command(group, "tidings channels resume phone")
async def resume(ctx: CommandContext, name: Name) -> None:
    """Resume a channel: end a pause, a throttling and an open breaker."""
    _answer(ctx, await ctx.outbound.channels.resume(name))


@group.command(epilog=examples("tidings channels test bot", "tidings channels test bot --json"))
def test(name: Name, *, as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Test the account of a channel at its provider. Sends nothing; needs no database.

    Exit code 1 if it does not work.
    """
    from ..outbound.channel_probes import probe_channel

    async def work() -> bool:
        async with engine.channels(engine.settings(config, sends=True)) as channels:
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
    to: Annotated[str, argument("URL", "URL of the receiver, or default.")],
    *,
    tenant: Annotated[str, option("TENANT", "Sending tenant.")] = "default",
    as_json: AsJson = False,
    config: ConfigFile = None,
) -> None:
    """Show the signing secrets of one receiver, newest first. Needs no database."""
    from ..outbound.channels.signing_secrets import endpoint_secrets

    async def work() -> Row:
        async with engine.channels(engine.settings(config, sends=True)) as channels:
            return dict(endpoint_secrets(channels, name, to, tenant=tenant))

    found = engine.run(work())
    if as_json:
        output.say_json(found)
    else:
        for one in found["secrets"]:
            output.say(one)


@group.command(epilog=examples("tidings channels qr whatsapp"))
def qr(name: Name, *, as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Show the QR code that links a phone to the session of a channel. Needs no database.

    Exit code 1 if the session is not connected and offers no code.
    """
    from ..outbound.sessions import qr_codes

    async def work() -> qr_codes.SessionQrCode:
        async with engine.channels(engine.settings(config, sends=True)) as channels:
            with output.working(f"asking the session of {name}", is_shown=not as_json):
                return await qr_codes.read_qr_code(channels, name)

    scan = engine.run(work())
    if as_json:
        output.say_json(scan._asdict())
    else:
        _show_code(scan)
    if scan.code is None and scan.session_state != "connected":
        raise typer.Exit(1)


def _show_code(scan: SessionQrCode) -> None:
    from ..outbound.sessions import qr_codes

    words = scan.session_state.replace("_", " ")
    output.say((scan.channel, "bold"), " is ", (words, "yellow" if scan.code else ""), f": {scan.reason}")
    if scan.code is not None:
        sys.stdout.write(qr_codes.render_terminal(scan.code, colours=output.on_terminal()))
        output.say(("→ on the phone: WhatsApp, Linked devices, Link a device. The code changes often", "dim"))
    elif scan.session_state == "logged_out":
        output.say(("→ no code available: start the session on its server, then run this command again", "dim"))


_VERDICTS = {True: ("works", "green"), False: ("does not work", "bold red"), None: ("not tested", "yellow")}


def _facts(row: Row, *, is_public: bool) -> None:
    wait = row["per_recipient_s"]
    on_unknown = f"{row['on_unknown']}: {row['why_on_unknown']}" if row["why_on_unknown"] else row["on_unknown"]
    output.facts(
        [
            *output.fields(row, "name"),
            ("kind", row["kind"], row["kind"] or "(not configured here)"),
            ("state", row["state"], output.state(row)),
            ("reason", _reason(row), None),
            *output.fields(row, "session=session_state", "until=blocked_until", "breaker", "per_second"),
            ("per recipient", wait, "" if wait is None else f"one in {wait:g} s"),
            ("deadline", row["deadline_s"], f"{row['deadline_s']:g} s"),
            *output.fields(row, "policy"),
            ("on unknown", row["on_unknown"], on_unknown),
            *output.fields(row, "callback"),
            *[("breaker open", one["host"], _breaker_text(one)) for one in row["destinations"]],
        ]
    )
    if row["callback"] and not is_public:
        output.say(("the provider must be able to reach this address: set public_url to the public one", "yellow"))


def _breaker_text(destination: Row) -> str:
    tenant = destination["tenant"]
    whose = "" if tenant == "default" else f" (tenant {tenant})"
    return f"{destination['host']}{whose} until {destination['until']}: {destination['reason']}"


def _answer(ctx: CommandContext, row: Row) -> None:
    paused = f" is paused: {row['pause_reason']}" if row["paused"] else " resumed"
    ctx.answer(row, lambda: output.say((row["name"], "bold"), paused))


def _reason(row: Row) -> object:
    link = row["session_reason"] if row["session_state"] not in (None, "connected") else None
    return row["pause_reason"] or link or row["block_reason"]
