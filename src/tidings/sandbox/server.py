"""The sandbox as a server of its own."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from types import FrameType

import uvicorn

from tidings.model.errors import Misconfigured
from tidings.wire.connection_limits import BACKLOG, ConnectionLimits, connection_budget, limited_protocol

from .access import read_access
from .app import create_sandbox
from .simulator import SandboxSimulator

HOST = "127.0.0.1"
PORT = 8025


class SandboxPortInUse(Misconfigured):
    """Somebody else listens there."""

    exit_code = 2


def serve(
    ledger_path: Path | None,
    *,
    host: str = HOST,
    port: int = PORT,
    mail_port: int | None = None,
    key_file: Path | None = None,
    callback_hosts: tuple[str, ...] = (),
) -> None:
    """Run until a signal comes. Raises before anything starts when a port or the ledger cannot be had,
    or when others could reach it without a key.

    Mail is taken on the next port, unless another is named.
    """
    access = read_access(host, key_file, callback_hosts)
    listening = _listen(host, port)
    mail = _listen_for_mail(host, port, mail_port)
    try:
        app = create_sandbox(ledger_path, mail=mail, access=access)
        print(f"The pretend phone is at http://{_shown(host)}:{listening.getsockname()[1]}/", flush=True)
        if mail is None:
            print("It takes no mail: that port is in use (choose one with --mail-port)", flush=True)
        else:
            print(f"It takes mail at {_shown(host)}:{mail.getsockname()[1]}", flush=True)
        print(f"Its ledger is {ledger_path or 'kept in memory only (give --ledger to keep it)'}", flush=True)
        limits = ConnectionLimits(connections=connection_budget(1000, concurrency=0))
        config = uvicorn.Config(
            app, http=limited_protocol(limits), ws="none", backlog=BACKLOG, log_level="warning",
            access_log=False, proxy_headers=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        _SandboxServer(config, app.state.world).run(sockets=[listening])
    finally:
        listening.close()
        if mail is not None:
            mail.close()


class _SandboxServer(uvicorn.Server):
    """Ends the live pages first: otherwise an open page would hold up the stop."""

    def __init__(self, config: uvicorn.Config, world: SandboxSimulator) -> None:
        super().__init__(config)
        self._world = world

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._world.feed.close()
        super().handle_exit(sig, frame)


def _listen_for_mail(host: str, port: int, wanted: int | None) -> socket.socket | None:
    """The port that was named, or else the next one if it is free: few need it."""
    if wanted is not None:
        return _listen(host, wanted)
    try:
        return _listen(host, port + 1 if port else 0)
    except SandboxPortInUse:
        return None


def _listen(host: str, port: int) -> socket.socket:
    """Listen before anything else is touched: a taken port changes nothing, and whoever reads the
    printed address can connect at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise SandboxPortInUse(
                f"Port {port} on {host} is in use",
                remedy="Stop what listens there, or choose another with --port",
            ) from error
        why = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        raise SandboxPortInUse(
            f"The sandbox cannot listen on {host} port {port}: {why}",
            remedy="Choose another with --host or --port",
        ) from error
    return listening


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
