"""Access to the sandbox: Host and Origin checks, its key, and the hosts that callbacks may go to.

Cross-site requests are rejected. On loopback the sandbox's own routes serve local host names only (DNS
rebinding) and need no key; elsewhere they need the sandbox key. Routes of simulated providers take the
credentials of those providers.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.responses import Response
from starlette.types import Scope

from tidings.model.errors import Conflict, Invalid, Misconfigured
from tidings.wire.origin_checks import host_name, is_cross_site, is_loopback
from tidings.wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url

from .responses import error_response

SAFE = ("GET", "HEAD", "OPTIONS")
SHORTEST = 16
TAKES_MESSAGES = "/sandbox/messages"  # the one route below /sandbox that belongs to a provider

_ANY = SsrfRules(allow_private=True, allow_http=True)


@dataclass(frozen=True, slots=True)
class SandboxAccess:
    """The access rules of one sandbox. `callback_hosts` may be called in addition to loopback."""

    is_local: bool = True
    key: str | None = field(default=None, repr=False)
    callback_hosts: frozenset[str] = frozenset()

    def refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that is not allowed; None: it is allowed."""
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        is_own = scope["path"] == "/" or scope["path"].startswith("/sandbox")
        if self.is_local and is_own and not is_loopback(name):  # providers may be called by real host names
            problem = f"The sandbox does not serve the host {name[:100]!r}"
            return error_response(Conflict(problem, remedy="Use http://localhost"), 403)
        if scope["method"] not in SAFE and is_cross_site(headers):
            return error_response(Conflict("Cross-site request", remedy="Use the sandbox page"), 403)
        needs_key = is_own and self.key is not None and scope["path"] != TAKES_MESSAGES
        if needs_key and not self._opens(headers):
            answer = error_response(Conflict("The sandbox key is required"), 401)
            answer.headers["www-authenticate"] = 'Basic realm="sandbox", charset="UTF-8"'
            return answer
        return None

    def check_callback(self, url: str) -> None:
        """Raise Invalid for a URL that the sandbox must not call."""
        try:
            target = check_url(url, _ANY)
        except ForbiddenUrl as error:
            raise Invalid(f"url cannot be called: {error}", field="url") from None
        name = (target.address or target.host).lower()
        if not is_loopback(name) and name not in self.callback_hosts:
            remedy = "Use a loopback address, or start the sandbox with --callback-host"
            raise Invalid(f"The sandbox does not call {name[:100]!r}", remedy=remedy, field="url")

    def _opens(self, headers: Mapping[bytes, bytes]) -> bool:
        """Check X-API-Key, a Bearer token, or the password of Basic auth (for browsers)."""
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        shown = headers.get(b"x-api-key", given)
        if scheme.lower() == b"basic" and b"x-api-key" not in headers:
            try:
                shown = b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        return hmac.compare_digest(shown, (self.key or "").encode())


LOCAL = SandboxAccess()


def read_access(host: str, key_file: Path | None, callback_hosts: tuple[str, ...] = ()) -> SandboxAccess:
    """Return the rules for a listening address; raises Misconfigured for a public one without a key."""
    key = None if key_file is None else _read_key(key_file)
    if key is None and not is_loopback(host):
        problem = f"host is {host!r}, which others can reach, but the sandbox has no key"
        raise Misconfigured(problem, remedy="Use --key-file FILE, or listen on 127.0.0.1", field="host")
    return SandboxAccess(is_loopback(host), key, frozenset(name.lower() for name in callback_hosts))


def _read_key(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        problem = f"--key-file names {str(path)!r}, which cannot be read ({why})"
        raise Misconfigured(problem, remedy="Check the path and its permissions", field="key_file") from None
    if len(key) < SHORTEST:
        problem = f"the key in {str(path)!r} has fewer than {SHORTEST} characters"
        raise Misconfigured(problem, remedy="Create one: openssl rand -hex 32", field="key_file")
    return key
