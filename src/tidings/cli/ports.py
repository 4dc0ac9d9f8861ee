"""Listening sockets: bound first, so that a port in use changes nothing; opened when the engine is ready."""

from __future__ import annotations

import errno
import socket

from ..model.errors import Misconfigured
from ..wire.connection_limits import BACKLOG


class PortInUse(Misconfigured):
    """Another process listens on the port."""

    exit_code = 2


def listen(host: str, port: int, *, remedy: str) -> socket.socket:
    """Return a listening socket."""
    listening = bind(host, port, remedy=remedy)
    accept_on(listening, remedy=remedy)
    return listening


def accept_on(bound: socket.socket, *, remedy: str) -> None:
    """Accept connections. Raises PortInUse if another process listened on the same address first."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        host, port = bound.getsockname()[:2]
        bound.close()
        raise _listen_error(error, host, port, remedy) from None


def bind(host: str, port: int, *, remedy: str) -> socket.socket:
    """Return a bound socket that refuses connections until `accept_on`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        problem = f"unknown address {host!r} ({error.strerror})"
        raise Misconfigured(problem, remedy="use 127.0.0.1, or an address of this machine", field="host") from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _listen_error(error, host, port, remedy) from None
    return bound


def _listen_error(error: OSError, host: str, port: int, remedy: str) -> Misconfigured:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"port {port} on {host} is in use", remedy=remedy, field="port")
    problem = f"cannot listen on {host} port {port} ({error.strerror})"
    return Misconfigured(problem, remedy="choose another one with --host or --port", field="port")


def port_of(listening: socket.socket) -> int:
    """Return the port of a bound socket."""
    return int(listening.getsockname()[1])


def display_host(host: str) -> str:
    """Return a host as it is written in a URL."""
    if host in ("0.0.0.0", "::"):
        return "localhost"
    return f"[{host}]" if ":" in host else host
