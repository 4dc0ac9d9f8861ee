"""Host and Origin checks of our servers, against DNS rebinding and cross-site requests (CSRF). Pure.

Loopback alone is no protection: any page in the user's browser can send requests to it, and a name that
resolves to 127.0.0.1 can read the responses (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address


def host_name(header: str) -> str:
    """Return the name in a Host header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


@lru_cache(1000)
def is_loopback(name: str) -> bool:
    """Whether a name or address is this machine, without a DNS lookup."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_cross_site(headers: Mapping[bytes, bytes], *, certainly: bool = False) -> bool:
    """Whether another site made a browser send this; `certainly`: assume so unless a header denies it."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    return certainly if origin is None else origin.partition(b"://")[2] != headers.get(b"host")
