"""CSRF and DNS rebinding protection.

Listening on loopback is not enough: any website can make the user's browser send requests to it (CSRF), and a
domain that resolves to 127.0.0.1 can read the responses (DNS rebinding). So a server on loopback accepts only
local host names, and requests that change something must not come from another site.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.errors import Forbidden
from ..wire.origin_checks import host_name, is_cross_site, is_loopback


def check_host(headers: Mapping[bytes, bytes], host: str) -> None:
    """Raise Forbidden if a server that listens on loopback is addressed by a foreign host name."""
    if not is_loopback(host):
        return
    name = host_name(headers.get(b"host", b"").decode("latin-1"))
    if name != host.lower() and not is_loopback(name):
        raise Forbidden(f"host {name[:100]!r} is not served at this address", remedy="use http://localhost")


def check_origin(headers: Mapping[bytes, bytes], *, has_session: bool = False) -> None:
    """Raise Forbidden for a cross-site request.

    Programs send neither Origin nor Sec-Fetch-Site. With a session cookie one of the two is required.
    """
    if is_cross_site(headers, certainly=has_session):
        raise Forbidden("cross-site request rejected", remedy="use the dashboard or the API of this server directly")
