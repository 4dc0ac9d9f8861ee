"""The gate every request passes: its id, its host, its origin, its key, its size.

Loopback is no protection by itself: any page in the user's browser can send requests to it, and a name that
is made to point at 127.0.0.1 can read the answers. So on loopback only local names are served, and a request
that changes something must not come from another site.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..model.errors import TidingsError, TooLarge
from .errors import Forbidden, Unauthorised, Unexpected, refusal
from .keys import Keys

CALLBACKS = "/callbacks/"  # providers call here: what they send is known by its signature
FEED = "/calendar.ics"  # calendar programs have no headers: the route looks at its own token
INBOUND = "/inbound/"  # sources call here, likewise
OPEN = ("/health", "/sign-in", "/static/", CALLBACKS, FEED, INBOUND)  # what needs no key
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
SIGN_IN = "/sign-in"
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
)  # fmt: skip
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("tidings.api")


class Gate:
    """Wraps the whole application. Whatever the inside fails to answer is answered here."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        host: str,
        new_id: Callable[[], str],
        largest: int,
        unlimited: frozenset[str],
    ) -> None:
        self._app = app
        self._keys = keys
        self._local_only = is_loopback(host)
        self._host = host.lower()
        self._new_id = new_id
        self._largest = largest
        self._unlimited = _any_of(unlimited)  # routes that watch the size by themselves

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
            await refusal(error, request_id)(scope, receive, answer)
        except Exception:  # the last resort: the caller gets an answer, the log gets the reason
            _log.exception("request %s failed", request_id)
            if started:
                raise
            remedy = f"look for request {request_id} in the log"
            await refusal(Unexpected("something went wrong in here", remedy=remedy), request_id)(
                scope, receive, answer
            )

    async def _pass(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        # A proxy hands call-backs on under the name that the provider knows.
        if not path.startswith((CALLBACKS, INBOUND)):
            self._check_host(headers)
        if scope["method"] not in SAFE:
            check_origin(headers)
        if not path.startswith(OPEN) and not self._keys.admit(headers):
            await self._turn_away(scope, headers)(scope, receive, send)
            return
        if not self._unlimited.fullmatch(path):
            self._check_length(headers)
            receive = self._counted(receive)
        await self._app(scope, receive, send)

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

    def _turn_away(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Response:
        """A person is shown the way in; a program is told what is missing."""
        if scope["method"] in SAFE and b"text/html" in headers.get(b"accept", b""):
            return RedirectResponse(f"{SIGN_IN}?next={quote(scope['path'])}", 303)
        remedy = "send Authorization: Bearer KEY, or X-API-Key: KEY, with one of the configured api_keys"
        return refusal(Unauthorised("a valid API key is needed", remedy=remedy), scope["state"]["request_id"])

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._largest:
            raise too_large(self._largest)

    def _counted(self, receive: Receive) -> Receive:
        """Counts what really comes in, whatever was announced."""
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._largest:
                raise too_large(self._largest)
            return message

        return counted


def _any_of(templates: Iterable[str]) -> re.Pattern[str]:
    """One pattern for paths, in which {name} stands for one part."""
    return re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in templates))


def too_large(largest: int) -> TooLarge:
    """What is said of a body over the limit."""
    remedy = "send less at a time; the limit follows from the setting max_body"
    return TooLarge(f"the body has more than {largest:,} bytes", remedy=remedy)


def check_origin(headers: Mapping[bytes, bytes]) -> None:
    """Refuse what another site makes a browser send. Programs send neither header."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None:
        foreign = site not in (b"same-origin", b"none")
    else:
        foreign = origin is not None and origin.partition(b"://")[2] != headers.get(b"host")
    if foreign:
        raise Forbidden(
            "another site made this request", remedy="use the page or the API of this server itself"
        )


def host_name(header: str) -> str:
    """The name in a Host header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def is_loopback(name: str) -> bool:
    """Whether a name or an address means this machine, without asking anybody."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _added(given: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    names = {name for name, _ in given}
    fresh = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
    return [(b"x-request-id", request_id.encode()), *HEADERS, *fresh]
