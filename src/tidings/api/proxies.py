"""Clients: the address that a request comes from, and whether a proxy handed it on.

X-Forwarded-For is believed only from the proxies of the setting `trusted_proxies`; from anybody else it is a
claim that everybody can make.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope

_MARKS = frozenset(
    {b"forwarded", b"via", b"x-real-ip", b"cf-connecting-ip", b"true-client-ip", b"x-client-ip"}
)
_MOST_HOPS = 20

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_forwarded(names: Iterable[bytes]) -> bool:
    """Whether one of these headers says that a proxy hands on what somebody else sent."""
    return any(name in _MARKS or name.startswith(b"x-forwarded") for name in names)


class ClientAddresses:
    """Finds the address of whoever sent a request."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ipaddress.ip_network(one) for one in trusted]

    def address(self, scope: Scope) -> str | None:
        """The client's address: the nearest one that is not a trusted proxy."""
        client = scope.get("client")
        peer = str(client[0]) if client else None
        if not self._trusted or not self._is_trusted(_read(peer or "")):
            return peer
        named = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        found = peer
        for text in reversed(named.decode("latin-1").split(",")[-_MOST_HOPS:]):
            hop = _read(text)
            if hop is None:
                return found
            found = str(hop)
            if not self._is_trusted(hop):
                return found
        return found

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _read(text: str) -> Address | None:
    """An address as proxies write it: alone, with a port, or in brackets."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found
