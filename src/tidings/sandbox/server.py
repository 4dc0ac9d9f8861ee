"""The sandbox as a separate server."""

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
    """The port is in use."""

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
    """Run until a signal. Raises before anything starts if a port or the ledger is unavailable, or if others
    could reach the sandbox without a key.

    Mail is accepted on the next port, unless `mail_port` is given.
    """
    access = read_access(host, key_file, callback_hosts)
    listening = _listen(host, port)
    mail = _listen_for_mail(host, port, mail_port)
    try:
        app = create_sandbox(ledger_path, mail=mail, access=access)
        print(f"The simulated phone is at http://{_shown(host)}:{listening.getsockname()[1]}/", flush=True)
        if mail is None:
            print("Mail is off: the port is in use (choose one with --mail-port)", flush=True)
        else:
            print(f"It accepts mail at {_shown(host)}:{mail.getsockname()[1]}", flush=True)
        print(f"Its ledger is {ledger_path or 'in memory only (keep it with --ledger FILE)'}", flush=True)
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
    """Ends live pages first, since an open page would delay the shutdown."""

    def __init__(self, config: uvicorn.Config, world: SandboxSimulator) -> None:
        super().__init__(config)
        self._world = world

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._world.feed.close()
        super().handle_exit(sig, frame)


def _listen_for_mail(host: str, port: int, wanted: int | None) -> socket.socket | None:
    """Listen on the given port, or on the next one if it is free."""
    if wanted is not None:
        return _listen(host, wanted)
    try:
        return _listen(host, port + 1 if port else 0)
    except SandboxPortInUse:
        return None


def _listen(host: str, port: int) -> socket.socket:
    """Listen before anything else starts: a port in use changes nothing, and clients can connect as soon as
    the address is printed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            remedy = "Stop the other process, or choose another port with --port"
            raise SandboxPortInUse(f"Port {port} on {host} is in use", remedy=remedy) from error
        why = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        problem = f"The sandbox cannot listen on {host} port {port}: {why}"
        raise SandboxPortInUse(problem, remedy="Choose another with --host or --port") from error
    return listening


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
