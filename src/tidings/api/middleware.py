"""The gate every request passes: its id, its host, its origin, its caller, its rule, its size.

Loopback is no protection by itself: any page in the user's browser can send requests to it, and a name that
is made to point at 127.0.0.1 can read the answers. So on loopback only local names are served, and a request
that changes something must not come from another site. In no-key mode a request that a proxy handed on is
refused: whoever sent it is not on this machine.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..access.caller import ANONYMOUS, DASHBOARD, THIS_MACHINE, Caller, acting_as
from ..access.permissions import OPEN
from ..access.service import AccessService
from ..model.errors import Forbidden, TidingsError, TooLarge
from ..wire.origin_checks import host_name, is_cross_site, is_loopback
from .audit_middleware import SAFE_METHODS, RequestAudit
from .authorization import RouteMatch, RouteTable
from .credentials import RequestCredentials, read_credentials
from .errors import BodyTimeout, InternalError, Unauthorized, error_response, route_not_found
from .proxies import ClientAddresses, is_forwarded

CALLBACKS = "/callbacks/"  # providers call here: what they send is known by its signature
CALENDAR_FEED_PATH = "/calendar.ics"  # calendar programs have no headers: the route looks at its own token
INBOUND = "/inbound/"  # sources call here, likewise
SIGN_IN_PATH = "/sign-in"
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
)  # fmt: skip
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("tidings.api")


class AccessMiddleware:
    """Wraps the whole application. Whatever the inside fails to answer is answered here."""

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
        self._app = app
        self._access = access
        self._route_table = RouteTable()
        self._clients = ClientAddresses(trusted_proxies)
        self._local_only = is_loopback(host)
        self._host = host.lower()
        self._new_id = new_id
        self._largest = largest
        self._unlimited = _any_of(unlimited)  # routes that watch the size by themselves
        self._body_seconds = body_seconds  # for a caller without a key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = self._request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *_added(message["headers"], request_id)]
            await send(message)

        try:
            await self._pass(scope, headers, receive, answer)
        except TidingsError as error:
            await _error_answer(error, scope, headers)(scope, receive, answer)
        except ClientDisconnect:
            return  # in the middle of its body: nobody is left to be answered
        except Exception:  # the last resort: the caller gets an answer, the log gets the reason
            _log.exception("request %s failed", request_id)
            if started:
                raise
            remedy = f"look for request {request_id} in the log"
            await error_response(InternalError("something went wrong in here", remedy=remedy), request_id)(
                scope, receive, answer
            )

    async def _pass(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        # A proxy hands call-backs on under the name that the provider knows.
        if not path.startswith((CALLBACKS, INBOUND)):
            self._check_host(headers)
        if scope["method"] not in SAFE_METHODS:
            check_origin(headers)
        found = self._route_table.find(scope["app"], scope["method"], path)
        scope["state"]["address"] = self._clients.address(scope)
        if found is not None and found.rule.action is OPEN:
            caller, shows = (
                replace(ANONYMOUS, origin=client_address_of(scope)),
                RequestCredentials(None, None),
            )
            receive = _with_body_timeout(receive, self._body_seconds)
        else:
            shows = scope["state"]["shown"] = read_credentials(headers)
            known = await authenticate(self._access, shows, scope)
            if known is None:
                await self._unauthorized_response(scope, headers)(scope, receive, send)
                return
            caller = _with_origin(known, scope)
        if found is None:
            raise route_not_found(scope["method"], path)
        noting = RequestAudit(self._access.audit, found, caller, scope["state"]["request_id"])
        with acting_as(caller):
            try:
                await self._check(found, caller, shows, headers)
                if not self._unlimited.fullmatch(path):
                    self._check_length(headers)
                    receive = self._counted(receive)
                await self._app(scope, receive, noting.before(send))
            except Exception as error:
                await noting.failed(error)
                raise

    async def _check(
        self, found: RouteMatch, caller: Caller, shows: RequestCredentials, headers: Mapping[bytes, bytes]
    ) -> None:
        """Raises unless this caller may do this now."""
        place = found.place
        if place is None or found.rule.action is OPEN:
            return
        if place.method not in SAFE_METHODS and shows.session is not None:
            check_origin(headers, certainly=True)
        await self._access.limiter.spend(caller)
        if not caller.passes(found.rule, place.area):
            raise _permission_denied(caller, found)

    def _request_id(self, headers: Mapping[bytes, bytes]) -> str:
        given = headers.get(b"x-request-id", b"")
        return given.decode() if _ID.fullmatch(given) else self._new_id()

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        if not self._local_only:
            return
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name != self._host and not is_loopback(name):
            raise Forbidden(
                f"this address does not serve the host {name[:100]!r}", remedy="use http://localhost"
            )

    def _unauthorized_response(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Response:
        """A person is shown the way in; a program is told what is missing."""
        if scope["method"] in SAFE_METHODS and b"text/html" in headers.get(b"accept", b""):
            return RedirectResponse(f"{SIGN_IN_PATH}?next={quote(scope['path'])}", 303)
        remedy = "send Authorization: Bearer KEY, or X-API-Key: KEY, with a key that is good"
        return error_response(
            Unauthorized("a valid API key is needed", remedy=remedy), scope["state"]["request_id"]
        )

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._largest:
            raise body_too_large(self._largest)

    def _counted(self, receive: Receive) -> Receive:
        """Counts what really comes in, whatever was announced."""
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._largest:
                raise body_too_large(self._largest)
            return message

        return counted


def _with_body_timeout(receive: Receive, seconds: float) -> Receive:
    """The same, as long as the whole body comes within that time of the first look at it."""
    until: float | None = None
    is_whole = False

    async def hurried() -> Message:
        nonlocal until, is_whole
        if is_whole:
            return await receive()
        until = until or asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            remedy = "send it at once; the limit is the setting header_timeout"
            raise BodyTimeout("the body did not come in time", remedy=remedy) from None
        is_whole = not message.get("more_body", False)
        return message

    return hurried


def _any_of(templates: Iterable[str]) -> re.Pattern[str]:
    """One pattern for paths, in which {name} stands for one part."""
    return re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in templates))


def body_too_large(largest: int) -> TooLarge:
    """What is said of a body over the limit."""
    remedy = "send less at a time; the limit follows from the setting max_body"
    return TooLarge(f"the body has more than {largest:,} bytes", remedy=remedy)


def check_origin(headers: Mapping[bytes, bytes], *, certainly: bool = False) -> None:
    """Refuse what another site makes a browser send. Programs send neither header; who has a cookie must."""
    if is_cross_site(headers, certainly=certainly):
        raise Forbidden(
            "another site made this request", remedy="use the page or the API of this server itself"
        )


async def authenticate(access: AccessService, shows: RequestCredentials, scope: Scope) -> Caller | None:
    """Whoever shows this, None for nobody. Wrong keys are recorded; too many of them are refused unseen."""
    failures, address = access.failures, client_address_of(scope)
    if shows.key is not None:
        failures.check(address, shows.key)
    known = await access.door.caller(*shows)
    if known is THIS_MACHINE:
        if is_forwarded(name for name, _ in scope["headers"]):
            raise Forbidden(
                "a proxy handed this request on, and there is no key yet",
                remedy="create one on this machine: tidings keys create NAME --role admin",
            )
    elif shows.key is not None and known is not None:
        failures.passed(address, shows.key)
    elif shows.key is not None:
        failures.failed(address, shows.key, where="api", request=scope["state"]["request_id"])
    return known


def _error_answer(error: TidingsError, scope: Scope, headers: Mapping[bytes, bytes]) -> Response:
    """A refusal: on a page for a person, where there are pages."""
    page: Callable[[TidingsError], Response] | None = getattr(scope["app"].state, "problem_page", None)
    if page is not None and b"text/html" in headers.get(b"accept", b"") and scope["path"][:4] != "/v1/":
        return page(error)
    return error_response(error, scope["state"]["request_id"])


def client_address_of(scope: Scope) -> str | None:
    """The client's address, as the gate found it."""
    address: str | None = scope["state"]["address"]
    return address


def _with_origin(caller: Caller, scope: Scope) -> Caller:
    """The caller, with where they call from; on an open door the pages are told from the API."""
    is_page = caller is THIS_MACHINE and not scope["path"].startswith("/v1/")
    return replace(caller, origin=client_address_of(scope), who=DASHBOARD if is_page else caller.who)


def _permission_denied(caller: Caller, found: RouteMatch) -> Forbidden:
    rule = found.rule
    if found.place is not None and caller.may(rule.action, area=found.place.area):
        problem, remedy = "this belongs to the whole engine", "use a key of the tenant default"
    elif caller.may(rule.action):
        problem, remedy = (
            f"the key {caller.who!r} is not for this area",
            "use a key without scopes, or with this",
        )
    else:
        problem = f"a key with the role {caller.role} may not do this"
        remedy = f"use a key that may {rule.action}; see the table of roles in the documentation"
    return Forbidden(problem, remedy=remedy)


def _added(given: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    names = {name for name, _ in given}
    fresh = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
    return [(b"x-request-id", request_id.encode()), *SECURITY_HEADERS, *fresh]
