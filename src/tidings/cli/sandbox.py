"""`tidings sandbox`: the simulated providers as a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import option

EXAMPLES = ("tidings sandbox", "tidings sandbox --port 9025 --ledger data/sandbox.jsonl")


def sandbox(
    host: Annotated[str, option("ADDRESS", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("N", "Port to listen on; 0 picks a free one.")] = 8025,
    mail_port: Annotated[int | None, option("N", "Port of the simulated mail server. [--port + 1]")] = None,
    ledger: Annotated[Path | None, option("FILE", "Append one line per request to FILE. [no ledger]")] = None,
    key_file: Annotated[
        Path | None, option("FILE", "File with the access key. Required unless --host is loopback.")
    ] = None,
    callback_host: Annotated[
        list[str] | None, option("HOST", "Host that callbacks may go to, besides this machine. Repeatable.")
    ] = None,
) -> None:
    """Run only the simulated phone and providers, with faults on demand.

    `tidings serve` includes them; use this command to run them without an engine.
    """
    from ..sandbox import serve

    serve(
        ledger, host=host, port=port, mail_port=mail_port, key_file=key_file, callback_hosts=tuple(callback_host or ())
    )
