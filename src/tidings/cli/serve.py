"""`tidings serve`: the engine, the API, the dashboard and the sandbox in one process."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine
from .options import ConfigFile, Database, option

EXAMPLES = (
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
    port: Annotated[int | None, option("N", "Port to listen on; 0 picks a free one. [8020]")] = None,
    metrics_port: Annotated[
        int | None, option("N", "Also serve /metrics and health checks on this port, without an API key. [off]")
    ] = None,
    concurrency: Annotated[int | None, option("N", "Messages sent concurrently. [100]")] = None,
    role: Annotated[
        list[str] | None, option("ROLE", "Role of this process. Repeatable. [api scheduler worker poller]")
    ] = None,
    queue: Annotated[
        list[str] | None, option("CHANNEL", "Send only on this channel. Repeatable. [all channels]")
    ] = None,
    partition: Annotated[str | None, option("I/N", "Handle only part I of N of the channels and sources.")] = None,
    max_messages_per_process: Annotated[
        int | None, option("N", "Shut down gracefully after N messages (exit code 75).")
    ] = None,
    max_memory_per_process: Annotated[
        str | None, option("SIZE", "Shut down gracefully at this memory usage (exit code 75).")
    ] = None,
    api_only: Annotated[
        bool, typer.Option("--api-only", help="Run the API and the dashboard only; send nothing.")
    ] = False,
    no_sandbox: Annotated[bool, typer.Option("--no-sandbox", help="Do not run the simulated phone.")] = False,
    log_format: Annotated[
        str | None, option("auto|json|text", "Log format; auto is text on a terminal, otherwise JSON.")
    ] = None,
    log_output: Annotated[str | None, option("stderr|stdout", "Where the log goes. [stderr]")] = None,
    log_level: Annotated[str | None, option("LEVEL", "debug, info, warning or error. [info]")] = None,
    config: ConfigFile = None,
) -> None:
    """Run the engine, the API, the dashboard and the simulated phone in one process.

    By default the database is ./data/tidings.db and the dashboard is at http://127.0.0.1:8020. With --role
    the process runs only these parts of a fleet.

    Ctrl-C or SIGTERM shuts down gracefully: messages in progress are finished or released. A second signal
    stops immediately.
    """
    chosen = engine.settings(
        config, database, sends=True, host=host, port=port, metrics_port=metrics_port, concurrency=concurrency,
        log_format=log_format, log_output=log_output, log_level=log_level, sandbox=False if no_sandbox else None,
        max_messages_per_process=max_messages_per_process,
        max_memory_per_process=max_memory_per_process,
    )  # fmt: skip
    chosen.check()
    from ..dispatch.roles import parse_share
    from .server_process import serve as run

    roles = ["api"] if api_only else role or []
    code = engine.run(run(chosen, parse_share(roles, queue or [], partition), config=config), fast=True)
    raise typer.Exit(code)
