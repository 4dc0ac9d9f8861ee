"""Authentication of a request: an API key in a header, or the session cookie of a browser.

A key is never accepted in a URL. In no-key mode a request that a proxy forwarded is rejected, because its
sender is not on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from starlette.requests import cookie_parser
from starlette.types import Scope

from ..access.authentication import SESSION_COOKIE
from ..access.caller import DASHBOARD, THIS_MACHINE, Caller
from ..access.service import AccessService
from ..model.errors import Forbidden
from .proxies import is_forwarded

COMPAT_PREFIX = "/api/v1/"  # the compatibility mode


class RequestCredentials(NamedTuple):
    """The API key or the session token of a request; a key takes precedence."""

    key: str | None = None
    session: str | None = None


def read_credentials(headers: Mapping[bytes, bytes], path: str = "") -> RequestCredentials:
    """Return the key from X-API-Key or Authorization, otherwise the session cookie.

    Routes of the compatibility mode also take it from `app-id`, the header that Connect's clients set.
    """
    key = headers.get(b"x-api-key") or _bearer(headers.get(b"authorization", b""))
    if key is None and path.startswith(COMPAT_PREFIX):
        key = headers.get(b"app-id")
    if key is not None:
        return RequestCredentials(key.decode("latin-1"))
    cookie = headers.get(b"cookie", b"").decode("latin-1")
    return RequestCredentials(session=cookie_parser(cookie).get(SESSION_COOKIE))


def _bearer(header: bytes) -> bytes | None:
    scheme, _, key = header.partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else None


def client_address_of(scope: Scope) -> str | None:
    """Return the client's address as the middleware determined it."""
    address: str | None = scope["state"]["address"]
    return address


async def authenticate(access: AccessService, credentials: RequestCredentials, scope: Scope) -> Caller | None:
    """Return the caller, or None if the credentials are missing or wrong.

    Wrong keys are counted; after too many, RateLimited is raised before the key is looked up.
    """
    failed_logins, address, key = access.failed_logins, client_address_of(scope), credentials.key
    if key is not None:
        failed_logins.check(address, key)
    caller = await access.authenticator.caller(*credentials)
    if caller is THIS_MACHINE:
        if is_forwarded(name for name, _ in scope["headers"]):
            raise Forbidden(
                "a proxy forwarded this request, but no API key exists yet",
                remedy="create one on this machine: tidings keys create NAME --role admin",
            )
    elif key is not None and caller is not None:
        failed_logins.passed(address, key)
    elif key is not None:
        failed_logins.failed(address, key, where="api", request=scope["state"]["request_id"])
    return caller


def with_origin(caller: Caller, scope: Scope) -> Caller:
    """Add the client's address; in no-key mode, requests of the dashboard get their own name."""
    is_dashboard = caller is THIS_MACHINE and not scope["path"].startswith(("/v1/", COMPAT_PREFIX))
    return replace(caller, origin=client_address_of(scope), who=DASHBOARD if is_dashboard else caller.who)
