"""`tidings sandbox`: the pretend phone alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .help import examples
from .options import option

EXAMPLES = examples("tidings sandbox", "tidings sandbox --port 9025 --ledger data/sandbox.jsonl")


def sandbox(
    host: Annotated[str, option("ADDRESS", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("N", "Port; 0 takes a free one.")] = 8025,
    mail_port: Annotated[int | None, option("N", "Port of the pretend mail server. [the next one]")] = None,
    ledger: Annotated[
        Path | None, option("FILE", "Gets one line per request; without it nothing is kept.")
    ] = None,
    key_file: Annotated[
        Path | None, option("FILE", "File with the key that others must show. Needed off loopback.")
    ] = None,
    callback_host: Annotated[
        list[str] | None, option("HOST", "Host that may be called back besides this machine. Repeatable.")
    ] = None,
) -> None:
    """The pretend phone alone, with faults on demand.

    `tidings serve` brings it along; this is for running it apart from the engine.
    """
    from ..sandbox import serve

    serve(
        ledger,
        host=host,
        port=port,
        mail_port=mail_port,
        key_file=key_file,
        callback_hosts=tuple(callback_host or ()),
    )
