"""Ports: taken before anything else is touched, so that a taken one changes nothing."""

from __future__ import annotations

import errno
import socket

from ..model.errors import Misconfigured

BACKLOG = 256  # connections that may be accepted in one turn of the loop, before any can be refused


class PortInUse(Misconfigured):
    """Somebody else listens there."""

    exit_code = 2


def listen(host: str, port: int, *, remedy: str) -> socket.socket:
    """A listening socket; whoever reads the printed address can connect at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        problem = f"the address {host!r} is not known here ({error.strerror})"
        raise Misconfigured(
            problem, remedy="use 127.0.0.1, or an address of this machine", field="host"
        ) from None
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(f"port {port} on {host} is in use", remedy=remedy, field="port") from None
        problem = f"nothing can listen on {host} port {port} ({error.strerror})"
        raise Misconfigured(problem, remedy="choose another with --host or --port", field="port") from None
    return listening


def port_of(listening: socket.socket) -> int:
    """The port that was given in the end."""
    return int(listening.getsockname()[1])


def shown(host: str) -> str:
    """A host as it stands in an address that can be clicked."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
