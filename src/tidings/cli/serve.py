"""`tidings serve`: everything in one process."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine
from .help import examples
from .options import ConfigFile, Database, option

EXAMPLES = examples(
    "tidings serve",
    "tidings serve --database postgresql://tidings@localhost/tidings --concurrency 256",
    "TIDINGS_SANDBOX_PORT=9025 tidings serve --port 9020",
    "tidings serve --role worker --role scheduler --queue phone",
    "tidings serve --role transport --queue phone --concurrency 200",
)


def serve(
    *,
    database: Database = None,
    host: Annotated[str | None, option("ADDRESS", "Address to listen on. [127.0.0.1]")] = None,
    port: Annotated[int | None, option("N", "Port to listen on; 0 takes a free one. [8020]")] = None,
    concurrency: Annotated[int | None, option("N", "Messages in hand at once. [100]")] = None,
    role: Annotated[
        list[str] | None, option("ROLE", "What it does; repeatable. [api scheduler worker poller]")
    ] = None,
    queue: Annotated[list[str] | None, option("CHANNEL", "Only this channel, repeatable. [all]")] = None,
    partition: Annotated[str | None, option("I/N", "Only part I of N of the channels and sources.")] = None,
    max_messages_per_process: Annotated[
        int | None, option("N", "End in order after N messages, with exit code 75.")
    ] = None,
    max_memory_per_process: Annotated[
        str | None, option("SIZE", "The same when so much memory is in use.")
    ] = None,
    api_only: Annotated[bool, typer.Option("--api-only", help="Accept and show, but send nothing.")] = False,
    no_sandbox: Annotated[bool, typer.Option("--no-sandbox", help="Without the pretend phone.")] = False,
    log_format: Annotated[
        str | None, option("auto|json|text", "auto: text on a terminal, else json.")
    ] = None,
    log_level: Annotated[str | None, option("LEVEL", "debug, info, warning or error.")] = None,
    config: ConfigFile = None,
) -> None:
    """Run everything in one process: engine, API, page, pretend phone. Or one role of a fleet.

    Without a configuration it keeps its database in ./data and serves http://127.0.0.1:8020. Ctrl-C or
    SIGTERM finishes what is in hand, or gives it back, and exits with 0; a second one stops at once.
    """
    chosen = engine.settings(
        config, database, host=host, port=port, concurrency=concurrency, log_format=log_format,
        log_level=log_level, sandbox=False if no_sandbox else None,
        max_messages_per_process=max_messages_per_process,
        max_memory_per_process=max_memory_per_process,
    )  # fmt: skip
    chosen.check()
    from ..dispatch.roles import parse_share
    from .server_process import serve as run

    roles = ["api"] if api_only else role or []
    code = engine.run(run(chosen, parse_share(roles, queue or [], partition), config=config), fast=True)
    raise typer.Exit(code)
