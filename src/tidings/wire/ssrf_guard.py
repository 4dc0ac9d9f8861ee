"""SSRF protection: checks URLs given by users, and every address that they resolve to.

A user who may name a URL must not reach what only this machine can reach. So a URL is parsed by the same
parser that the HTTP client uses (two parsers may disagree), *every* address of its name must be allowed, and
the caller connects to a checked address, never to the name (DNS rebinding). A name that cannot be resolved is
rejected: the guard fails closed.

`check_url` and `check_address` are pure; `SsrfGuard` adds the DNS lookup and caches checked answers for a
short time, so that a busy receiver does not cost a lookup per message.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote

from pyreqwest.http import Url

WEB_PORTS = frozenset({80, 443})
MAX_URL_LENGTH = 2048
REMEMBERED_FOR = 30.0  # seconds that checked addresses are cached
REMEMBERED = 4096  # URLs

_SHAPE = re.compile(r"https?://[^/?#\\]", re.ASCII | re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/]+//([^/?#]*)")

# Ranges that `is_global` accepts although they lead inwards, to another address, or to many.
_DENIED = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's host: metadata, keys, configuration
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.88.99.0/24",  # 6to4 relays
        "224.0.0.0/4",  # multicast
        "ff00::/8",  # multicast
        "64:ff9b::/96",  # NAT64: an embedded IPv4 address
        "64:ff9b:1::/48",  # local NAT64
        "2002::/16",  # 6to4: an embedded IPv4 address
        "2001::/32",  # Teredo: an embedded IPv4 address
        "::/96",  # IPv4-compatible
        "fec0::/10",  # site-local
        "5f00::/16",  # segment routing
        "3fff::/20",  # documentation
    )
)
_UNICAST = IPv6Address("2000::"), IPv6Address("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

# Ranges that `allow_private` opens. Link-local and these stay closed: clouds serve credentials there.
_PRIVATE = tuple(
    ip_network(text) for text in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
_METADATA = tuple(
    ip_network(text)
    for text in (
        "fd00:ec2::/32",  # Amazon: metadata, time and DNS
        "fd20:ce::254/128",  # Google
        "fd00:42::42/128",  # Scaleway
    )
)


class ForbiddenUrl(Exception):
    """This URL or address may not be called; the text never repeats a query or a password."""


class UnresolvedHost(Exception):
    """The name has no address at the moment. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class SsrfRules:
    """What a channel may call. `ports` None means 80 and 443, or any if private addresses are allowed."""

    allow_private: bool = False
    allow_http: bool = False
    ports: frozenset[int] | None = None

    def allows_port(self, port: int) -> bool:
        """Whether this port may be called."""
        if self.ports is None:
            return self.allow_private or port in WEB_PORTS
        return port in self.ports


class UrlTarget(NamedTuple):
    """A checked and parsed URL. `address` is set if the host is an address and needs no lookup."""

    url: Url
    scheme: str
    host: str
    port: int
    path: str
    address: str | None


def check_url(url: str, rules: SsrfRules) -> UrlTarget:
    """Parse and check a URL, without a DNS lookup. Raises ForbiddenUrl."""
    if len(url) > MAX_URL_LENGTH:
        raise ForbiddenUrl(f"the URL has more than {MAX_URL_LENGTH} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ForbiddenUrl("the URL contains a space, a backslash or a control character")
    if not _SHAPE.match(url):
        raise ForbiddenUrl("the URL does not start with https:// and a host")
    if (authority := _AUTHORITY.match(url)) and "@" in authority[1]:
        raise ForbiddenUrl("the URL has a user name or password before the host")
    try:
        parsed = Url(url)
    except ValueError as error:
        raise ForbiddenUrl(f"the URL is invalid: {error}") from error
    return _check_parts(parsed, rules)


def credentials_url(url: str) -> str:
    """Return a URL that may be called with credentials: https, or http within a private network.

    Raises ValueError.
    """
    try:
        target = check_url(url, SsrfRules(allow_private=True, allow_http=True))
    except ForbiddenUrl as error:
        raise ValueError(f"{error}; must be an https URL") from error
    if target.scheme != "https" and not _is_near(target):
        raise ValueError("must be an https URL: http would expose the credentials")
    return url


def _is_near(target: UrlTarget) -> bool:
    """Whether the host is a private address, this machine, or a local name without a dot."""
    return "." not in target.host if target.address is None else not _is_public(ip_address(target.address))


def api_url(url: str) -> str:
    """Return the base URL of an API, without a slash at its end. Raises ValueError."""
    url = credentials_url(url.strip().rstrip("/"))
    if "?" in url or "#" in url:
        raise ValueError("must be a URL without ? and #")
    return url


def _check_parts(url: Url, rules: SsrfRules) -> UrlTarget:
    host, port = url.host_str, url.port_or_known_default
    if url.scheme != "https" and not (rules.allow_http and url.scheme == "http"):
        raise ForbiddenUrl("the URL is not https")
    if not host or not port or url.username or url.password:
        raise ForbiddenUrl("the URL has no host, no port, or a user name")
    if not rules.allows_port(port):
        raise ForbiddenUrl(f"port {port} is not allowed")
    address = None
    if url.domain is None:
        address = check_address(host.strip("[]"), rules)
    return UrlTarget(url, url.scheme, host, port, url.path, address)


def check_address(address: str, rules: SsrfRules) -> str:
    """Return the address to connect to, unwrapped if it is IPv4 in IPv6. Raises ForbiddenUrl."""
    try:
        ip = ip_address(address)
    except ValueError as error:
        raise ForbiddenUrl("the host has an invalid address") from error
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if _is_public(ip) or (rules.allow_private and _is_private(ip)):
        return str(ip)
    raise ForbiddenUrl("the host has an address that is not public")


def _is_private(ip: IPv4Address | IPv6Address) -> bool:
    is_open = any(ip in network for network in _PRIVATE)
    return is_open and not any(ip in network for network in _METADATA)


def has_dot_segments(url: str) -> bool:
    """Whether a path segment of the URL is . or .. in any encoding: the path would not be as written."""
    path = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")[2] or url
    return any(unquote(step) in (".", "..") for step in re.split(r"[/\\]", path))


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address) and (ip.scope_id is not None or not _UNICAST[0] <= ip <= _UNICAST[1]):
        return False  # only 2000::/3 is assigned, so unknown ranges are rejected, too
    return ip.is_global and not any(ip in network for network in _DENIED)


def check_resolved(answers: Sequence[str], rules: SsrfRules) -> tuple[str, ...]:
    """Check all addresses of a name: one forbidden address rejects them all."""
    if not answers:
        raise UnresolvedHost("the host name has no address")
    return tuple(dict.fromkeys(check_address(answer, rules) for answer in answers))


class AdmittedUrl(NamedTuple):
    """A URL that may be called now, with the checked addresses of its name (none: the host is an address)."""

    target: UrlTarget
    addresses: tuple[str, ...]
    until: float

    def pin(self, attempt: int) -> str | None:
        """Return the address to connect to; each attempt uses the next, in case one is down."""
        return self.addresses[(attempt - 1) % len(self.addresses)] if self.addresses else None


Resolve = Callable[[str], Awaitable[Sequence[str]]]  # raises OSError or TimeoutError


class SsrfGuard:
    """Checks URLs against one set of rules, and caches results."""

    def __init__(self, rules: SsrfRules, resolve: Resolve, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._resolve = resolve
        self._monotonic = monotonic
        self._known: OrderedDict[str, AdmittedUrl] = OrderedDict()
        self._asking: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    def known(self, url: str) -> AdmittedUrl | None:
        """Return the cached result, if it is recent."""
        admitted = self._known.get(url)
        if admitted is None or admitted.until < self._monotonic():
            return None
        return admitted

    async def admit(self, url: str) -> AdmittedUrl:
        """Check a URL and every address of its name. Raises ForbiddenUrl or UnresolvedHost."""
        target = check_url(url, self._rules)
        if target.address is not None:
            admitted = AdmittedUrl(target, (), float("inf"))
        else:
            addresses = await self._addresses(target.host)
            admitted = AdmittedUrl(target, addresses, self._monotonic() + REMEMBERED_FOR)
        self._remember(url, admitted)
        return admitted

    def _remember(self, url: str, admitted: AdmittedUrl) -> None:
        self._known[url] = admitted
        self._known.move_to_end(url)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def _addresses(self, host: str) -> tuple[str, ...]:
        """Look up each name once at a time: many messages to one receiver must not occupy all threads."""
        task = self._asking.get(host)
        if task is None:
            task = asyncio.create_task(self._look_up(host))
            self._asking[host] = task
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(task)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        try:
            answers = await self._resolve(host)
        except (OSError, UnicodeError) as error:  # includes TimeoutError; UnicodeError: a label is too long
            raise UnresolvedHost(f"the DNS lookup failed ({type(error).__name__})") from error
        return check_resolved(answers, self._rules)
