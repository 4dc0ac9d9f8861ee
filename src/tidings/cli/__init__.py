"""The command-line interface, built with Typer. One module per command, named after it.

Modules import at the top only what `--help` needs; the engine is imported when a command runs.
A command module also names the audit actions (`broadcasts.pause`). The other modules:

banner: text that `serve` prints when it is ready and when it stops.
broadcast_progress: live progress of a broadcast.
broadcast_recipients: `tidings broadcasts recipients`, `export` and `reports`.
bulk: bulk sending from a file.
command_audit: one audit entry for every command that changes something.
commands: the `@command` decorator, shared options, CommandContext.
contact_imports: import of contacts and suppressions from a file.
conversations: `tidings inbox conversations`, `conversation` and `replay`.
database_move: `tidings db move`, from SQLite to PostgreSQL.
engine: settings and an open engine for one command.
errors: error messages and exit codes.
files: input and output files, with a progress bar.
fleet: processes without the API: workers, schedulers, pollers, dispatchers, transports.
help: the sections of `tidings --help`, and examples.
http_server: uvicorn without its signal handlers.
import_: `tidings import`.
message_progress: live progress of one message (`tidings send --wait`).
migrate_records: `tidings migrate` for records: log, export, repair, replay, undo, crosswalk.
migration_progress: live progress of a migration.
options: shared options, and parsers for JSON and NAME=VALUE.
output: tables, tab-separated lines and JSON.
ports: listening sockets.
process_recycler: restart after max_messages_per_process or max_memory_per_process.
program: the command tree, loaded one command at a time.
sandbox_phone: the simulated phone beside the engine.
server_process: the `serve` process: startup order, signals, graceful shutdown.
shell_completion: names and ids for shell completion.
table_layout: column widths of tables on a terminal.
telemetry: log, metrics, StatsD, OpenTelemetry and the metrics port of a process.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program `tidings` and exit."""
    from .errors import run_safely
    from .program import program

    sys.exit(run_safely(lambda **options: program(sys.argv[1:], **options)))
