"""The program: every command in its place."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import channels, config, db, dead, doctor, log, messages, nodes, sandbox, send, serve

RUN, LOOK, KEEP = "Send", "Look", "Look after"

program = typer.Typer(
    name="tidings",
    help="Every message, on time, once, and you can see why.",
    epilog="First steps: [bold]tidings serve[/] in one terminal, then in another: "
    '[bold]tidings send --channel phone --to ada --text "hello" --in 10s[/]',
    no_args_is_help=True,
    rich_markup_mode="rich",
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


program.command("serve", rich_help_panel=RUN)(serve.serve)
program.command("send", rich_help_panel=RUN)(send.send)
program.add_typer(messages.group, name="messages", rich_help_panel=LOOK)
program.command("log", rich_help_panel=LOOK)(log.log)
program.add_typer(dead.group, name="dead", rich_help_panel=LOOK)
program.add_typer(channels.group, name="channels", rich_help_panel=LOOK)
program.add_typer(nodes.group, name="nodes", rich_help_panel=LOOK)
program.command("doctor", rich_help_panel=KEEP)(doctor.doctor)
program.add_typer(db.group, name="db", rich_help_panel=KEEP)
program.command("config", rich_help_panel=KEEP)(config.config)
program.command("sandbox", rich_help_panel=KEEP)(sandbox.sandbox)


@program.command("version", rich_help_panel=KEEP)
def version() -> None:
    """Print the version."""
    _version(True)
