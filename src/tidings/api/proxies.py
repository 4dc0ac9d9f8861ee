"""The client's address behind trusted proxies (X-Forwarded-For).

X-Forwarded-For is trusted only from the proxies in the setting `trusted_proxies`; others could forge it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope

_PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip", b"cf-connecting-ip", b"true-client-ip", b"x-client-ip"})
_MAX_HOPS = 20

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_forwarded(names: Iterable[bytes]) -> bool:
    """Return whether one of these header names was added by a proxy."""
    return any(name in _PROXY_HEADERS or name.startswith(b"x-forwarded") for name in names)


class ClientAddresses:
    """Determines client addresses."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ipaddress.ip_network(one) for one in trusted]

    def address(self, scope: Scope) -> str | None:
        """Return the nearest address that is not a trusted proxy."""
        client = scope.get("client")
        peer = str(client[0]) if client else None
        if not self._trusted or not self._is_trusted(_parse(peer or "")):
            return peer
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        found = peer
        for text in reversed(forwarded.decode("latin-1").split(",")[-_MAX_HOPS:]):
            hop = _parse(text)
            if hop is None:
                return found
            found = str(hop)
            if not self._is_trusted(hop):
                return found
        return found

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def _parse(text: str) -> Address | None:
    """Parse an address, which may have a port or brackets."""
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
