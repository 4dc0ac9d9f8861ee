"""Ports: bound before anything else is touched, so that a taken one changes nothing; opened when ready."""

from __future__ import annotations

import errno
import socket

from ..model.errors import Misconfigured
from ..wire.connection_limits import BACKLOG


class PortInUse(Misconfigured):
    """Somebody else listens there."""

    exit_code = 2


def listen(host: str, port: int, *, remedy: str) -> socket.socket:
    """A listening socket; whoever reads the printed address can connect at once."""
    listening = bind(host, port, remedy=remedy)
    accept_on(listening, remedy=remedy)
    return listening


def accept_on(bound: socket.socket, *, remedy: str) -> None:
    """Take connections from now on. Raises PortInUse if another process that bound it, too, was faster."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        host, port = bound.getsockname()[:2]
        bound.close()
        raise _refused(error, host, port, remedy) from None


def bind(host: str, port: int, *, remedy: str) -> socket.socket:
    """A socket with this address that takes no connections yet: they are refused until `accept_on`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        problem = f"the address {host!r} is not known here ({error.strerror})"
        raise Misconfigured(
            problem, remedy="use 127.0.0.1, or an address of this machine", field="host"
        ) from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _refused(error, host, port, remedy) from None
    return bound


def _refused(error: OSError, host: str, port: int, remedy: str) -> Misconfigured:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"port {port} on {host} is in use", remedy=remedy, field="port")
    problem = f"nothing can listen on {host} port {port} ({error.strerror})"
    return Misconfigured(problem, remedy="choose another with --host or --port", field="port")


def port_of(listening: socket.socket) -> int:
    """The port that was given in the end."""
    return int(listening.getsockname()[1])


def display_host(host: str) -> str:
    """A host as it stands in an address that can be clicked."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
