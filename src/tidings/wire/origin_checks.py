"""Whom a request names and where it comes from: the Host and Origin checks of every server of ours. Pure.

Loopback is no protection by itself: any page in the user's browser can send requests to it, and a name that
is made to point at 127.0.0.1 can read the answers (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address


def host_name(header: str) -> str:
    """The name in a Host header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def is_loopback(name: str) -> bool:
    """Whether a name or an address means this machine, without asking anybody."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_cross_site(headers: Mapping[bytes, bytes], *, certainly: bool = False) -> bool:
    """Whether another site made a browser send this; `certainly`: it is, unless a header says otherwise."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        return site not in (b"same-origin", b"none")
    return certainly if origin is None else origin.partition(b"://")[2] != headers.get(b"host")
