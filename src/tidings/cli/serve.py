"""`tidings serve`: everything in one process."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine
from .help import examples
from .options import ConfigFile, Database

EXAMPLES = examples(
    "tidings serve",
    "tidings serve --database postgresql://tidings@localhost/tidings --slots 256",
    "TIDINGS_SANDBOX_PORT=9025 tidings serve --port 9020",
)


def serve(
    *,
    database: Database = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on. [127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port to listen on; 0 takes a free one. [8020]")
    ] = None,
    slots: Annotated[int | None, typer.Option(metavar="N", help="Messages in hand at once. [100]")] = None,
    api_only: Annotated[bool, typer.Option("--api-only", help="Accept and show, but send nothing.")] = False,
    no_sandbox: Annotated[bool, typer.Option("--no-sandbox", help="Without the pretend phone.")] = False,
    log_format: Annotated[
        str | None, typer.Option(metavar="auto|json|text", help="auto: text on a terminal, else json.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Run everything in one process: engine, API, page, pretend phone.

    Without a configuration it keeps its database in ./data and serves http://127.0.0.1:8020. Ctrl-C or
    SIGTERM finishes what is in hand, or gives it back, and exits with 0; a second one stops at once.
    """
    chosen = engine.settings(
        config, database, host=host, port=port, slots=slots, log_format=log_format, log_level=log_level,
        sandbox=False if no_sandbox else None,
    )  # fmt: skip
    chosen.check()
    from .process import serve as run

    engine.run(run(chosen, works=not api_only, config=config), fast=True)
