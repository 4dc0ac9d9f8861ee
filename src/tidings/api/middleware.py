"""The middleware that every request passes: request id, host, origin, caller, access rule, body limits."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..access.caller import ANONYMOUS, Caller, acting_as
from ..access.permissions import OPEN
from ..access.service import AccessService
from ..model.errors import TidingsError
from .audit_middleware import RequestAudit
from .authentication import RequestCredentials, authenticate, client_address_of, read_credentials, with_origin
from .authorization import SAFE_METHODS, RouteMatch, RouteTable, permission_denied
from .body_limits import check_content_length, remedy_for, with_size_limit, with_timeout
from .csrf import check_host, check_origin
from .errors import InternalError, Unauthorized, error_response, route_not_found
from .proxies import ClientAddresses

CALLBACKS = "/callbacks/"  # called by providers, authenticated by signature
INBOUND = "/inbound/"  # called by sources, authenticated by signature
CALENDAR_FEED_PATH = "/calendar.ics"  # calendar programs send no headers: the route checks a token
SIGN_IN_PATH = "/sign-in"
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
)  # fmt: skip
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("tidings.api")


class AccessMiddleware:
    """Wraps the whole application and answers every error that the application does not answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: AccessService,
        host: str,
        new_id: Callable[[], str],
        largest: int,
        unlimited: frozenset[str],
        body_seconds: float,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        """`unlimited` paths limit their bodies themselves; `body_seconds` is for calls without a key."""
        self._app = app
        self._access = access
        self._route_table = RouteTable()
        self._clients = ClientAddresses(trusted_proxies)
        self._host = host
        self._new_id = new_id
        self._largest = largest
        self._unlimited = _any_of(unlimited)
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = self._request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def respond(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *_added(message["headers"], request_id)]
            await send(message)

        try:
            await self._handle(scope, headers, receive, respond)
        except TidingsError as error:
            await _error_response(error, scope, headers)(scope, receive, respond)
        except ClientDisconnect:
            return
        except Exception:
            _log.exception("request %s failed", request_id)
            if started:
                raise
            remedy = f"look for request {request_id} in the log"
            await error_response(InternalError("internal error", remedy=remedy), request_id)(scope, receive, respond)

    async def _handle(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not path.startswith((CALLBACKS, INBOUND)):  # proxies forward these under the public host name
            check_host(headers, self._host)
        if scope["method"] not in SAFE_METHODS:
            check_origin(headers)
        match = self._route_table.find(scope["app"], scope["method"], path)
        scope["state"]["address"] = self._clients.address(scope)
        if match is not None and match.rule.action is OPEN:
            caller, credentials = replace(ANONYMOUS, origin=client_address_of(scope)), RequestCredentials()
            receive = with_timeout(receive, self._body_seconds)
        else:
            credentials = scope["state"]["shown"] = read_credentials(headers, path)
            known = await authenticate(self._access, credentials, scope)
            if known is None:
                await _unauthorized_response(scope, headers)(scope, receive, send)
                return
            caller = with_origin(known, scope)
        if match is None:
            raise route_not_found(scope["method"], path)
        audit = RequestAudit(self._access.audit, match, caller, scope["state"]["request_id"])
        with acting_as(caller):
            try:
                await self._authorize(match, caller, credentials, headers)
                if not self._unlimited.fullmatch(path):
                    check_content_length(headers, self._largest, remedy_for(path))
                    receive = with_size_limit(receive, self._largest, remedy_for(path))
                await self._respond(match, scope, receive, audit.before(send))
            except Exception as error:
                await audit.failed(error)
                raise

    async def _respond(self, match: RouteMatch, scope: Scope, receive: Receive, send: Send) -> None:
        """Call a simple endpoint directly, and all others through the framework."""
        handler = None if match.entry is None or scope["query_string"] else match.entry.handler
        if handler is None:
            await self._app(scope, receive, send)
        else:
            response = await handler(Request(scope, receive), match.names)
            await response(scope, receive, send)

    async def _authorize(
        self, match: RouteMatch, caller: Caller, credentials: RequestCredentials, headers: Mapping[bytes, bytes]
    ) -> None:
        """Raise Forbidden or RateLimited unless the caller may make this request now."""
        entry = match.entry
        if entry is None or match.rule.action is OPEN:
            return
        if match.has_effect and credentials.session is not None:
            check_origin(headers, has_session=True)
        await self._access.rate_limiter.spend(caller)
        if not caller.passes(match.rule, entry.area):
            raise permission_denied(caller, match)

    def _request_id(self, headers: Mapping[bytes, bytes]) -> str:
        given = headers.get(b"x-request-id", b"")
        return given.decode() if _REQUEST_ID.fullmatch(given) else self._new_id()


def _unauthorized_response(scope: Scope, headers: Mapping[bytes, bytes]) -> Response:
    """Redirect browsers to the sign-in form; answer programs with 401."""
    if scope["method"] in SAFE_METHODS and b"text/html" in headers.get(b"accept", b""):
        return RedirectResponse(f"{SIGN_IN_PATH}?next={quote(scope['path'])}", 303)
    remedy = "send Authorization: Bearer KEY, or X-API-Key: KEY, with a valid key"
    error = Unauthorized("a valid API key is required", remedy=remedy)
    return error_response(error, scope["state"]["request_id"])


def _any_of(templates: Iterable[str]) -> re.Pattern[str]:
    """Compile one pattern for path templates in which {name} matches one segment."""
    return re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in templates))


def _error_response(error: TidingsError, scope: Scope, headers: Mapping[bytes, bytes]) -> Response:
    """Answer browsers with the dashboard's error page, if there is one, and programs with JSON."""
    page: Callable[[TidingsError], Response] | None = getattr(scope["app"].state, "problem_page", None)
    if page is not None and b"text/html" in headers.get(b"accept", b"") and scope["path"][:4] != "/v1/":
        return page(error)
    return error_response(error, scope["state"]["request_id"])


def _added(given: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    names = {name for name, _ in given}
    fresh = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
    return [(b"x-request-id", request_id.encode()), *SECURITY_HEADERS, *fresh]
