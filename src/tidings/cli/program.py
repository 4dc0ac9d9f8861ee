"""The program: every command in its place."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import (
    alerts,
    audit,
    broadcast_rolls,
    calendar,
    cases,
    channels,
    config,
    contacts,
    conversations,
    db,
    dead,
    doctor,
    drill,
    import_,
    keys,
    lists,
    log,
    messages,
    migrate_records,
    models,
    nodes,
    output,
    rollout,
    roster,
    sandbox,
    schedules,
    send,
    serve,
    subscriptions,
    suppressions,
    templates,
    top,
)
from .commands import command
from .help import Sections, examples
from .options import AsJson

program = typer.Typer(
    name="tidings",
    help="Every message, on time, once, and you can see why.",
    epilog=examples("tidings serve", 'tidings send --channel phone --to ada --text "hello" --in 10s'),
    cls=Sections,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidings {__version__}")
        raise typer.Exit()


@program.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


program.command("serve", epilog=serve.EXAMPLES)(serve.serve)
program.command("send", epilog=send.EXAMPLES)(send.send)
program.add_typer(broadcast_rolls.GROUP, name="broadcasts")
program.add_typer(schedules.group, name="schedules")
program.add_typer(templates.group, name="templates")
program.add_typer(messages.group, name="messages")
program.command("log", epilog=log.EXAMPLES)(log.log)
program.add_typer(dead.group, name="dead")
program.add_typer(contacts.group, name="contacts")
program.add_typer(lists.group, name="lists")
program.add_typer(suppressions.group, name="suppressions")
program.add_typer(conversations.GROUP, name="inbox")
program.add_typer(cases.group, name="cases")
program.add_typer(roster.group, name="roster")
program.add_typer(channels.group, name="channels")
program.add_typer(nodes.group, name="nodes")
program.add_typer(alerts.group, name="alerts")
command(program, "top", epilog=top.EXAMPLES)(top.top)
program.add_typer(subscriptions.group, name="subscriptions")
program.add_typer(calendar.group, name="calendar")
program.add_typer(rollout.group, name="rollout")
program.add_typer(import_.group, name="import")
program.add_typer(migrate_records.GROUP, name="migrate")
program.add_typer(models.group, name="models")
program.add_typer(keys.group, name="keys")
program.add_typer(audit.group, name="audit")
program.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
program.command("drill", epilog=drill.EXAMPLES)(drill.drill)
program.add_typer(db.group, name="db")
program.command("config", epilog=config.EXAMPLES)(config.config)
program.command("sandbox", epilog=sandbox.EXAMPLES)(sandbox.sandbox)


@program.command("version", epilog=examples("tidings version", "tidings version --json"))
def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        output.say_json({"version": __version__})
    else:
        _version(True)
