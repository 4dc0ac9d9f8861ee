"""Sign-in for browsers: a key is shown once, and a cookie stands for it from then on."""

from __future__ import annotations

from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ...access.audit import audit_entry
from ...access.authentication import SESSION_COOKIE, SESSION_LIFETIME
from ...access.permissions import OPEN, requires
from ...access.service import AccessService
from ...model.errors import Invalid, TooLarge
from ...model.time import SECOND
from ..credentials import read_credentials
from ..errors import request_id_of
from ..middleware import SIGN_IN_PATH, client_address_of

LARGEST = 8192  # bytes of the form
MOST_FIELDS = 10


def routes(access: AccessService, *, is_https: bool) -> APIRouter:
    """Sign in and out; the form itself is a page of the dashboard.

    `is_https`: others reach this server over https, so the cookie is sent over nothing else.
    """
    router = APIRouter(include_in_schema=False)

    @router.post(SIGN_IN_PATH)
    @requires(OPEN)
    async def sign_in(request: Request) -> Response:
        """Exchange a key for a session."""
        origin = client_address_of(request.scope) or ""
        form = await _form(request)
        key, wanted = form.get("key", [""])[0].strip(), _path(form.get("next", ["/"])[0])
        access.failures.check(origin, key)
        signed_in = await access.door.sign_in(key, origin)
        if signed_in is None:
            access.failures.failed(origin, key, where="sign-in", request=request_id_of(request))
            return RedirectResponse(f"{SIGN_IN_PATH}?wrong=1&next={quote(wanted)}", 303)
        access.failures.passed(origin, key)
        token, caller = signed_in
        await access.audit.note(audit_entry(caller, "sign-in", status=303)._replace(origin=origin))
        response = RedirectResponse(wanted, 303)
        response.set_cookie(
            SESSION_COOKIE, token, max_age=SESSION_LIFETIME // SECOND, httponly=True, samesite="lax",
            secure=is_https or request.url.scheme == "https",
        )  # fmt: skip
        return response

    @router.post("/sign-out")
    @requires(OPEN)
    async def sign_out(request: Request) -> Response:
        """End the session, here and in this browser."""
        token = read_credentials(dict(request.scope["headers"])).session
        if token is not None:
            await access.door.sign_out(token)
        response = RedirectResponse(SIGN_IN_PATH, 303)
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax", secure=is_https)
        return response

    return router


async def _form(request: Request) -> dict[str, list[str]]:
    """The fields of the form; whoever has not signed in yet sends a few short ones."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            raise TooLarge(f"the form has more than {LARGEST:,} bytes", remedy="send a key and nothing else")
    try:
        return parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError:
        remedy = "send the fields key and next"
        raise Invalid(f"the form has more than {MOST_FIELDS} fields", remedy=remedy) from None


def _path(wanted: str) -> str:
    """Only a place on this server: anything else would send people elsewhere."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_local else "/"
