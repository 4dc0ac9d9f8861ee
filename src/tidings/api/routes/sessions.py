"""Sign-in and sign-out for browsers: an API key is exchanged for a session cookie."""

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
from ..authentication import client_address_of, read_credentials
from ..errors import request_id_of
from ..middleware import SIGN_IN_PATH

MAX_FORM_BYTES = 8192
MAX_FORM_FIELDS = 10


def routes(access: AccessService, *, is_https: bool) -> APIRouter:
    """Return the routes for sign-in and sign-out; the form is a dashboard page.

    `is_https`: clients use https, so the cookie gets the attribute Secure.
    """
    router = APIRouter(include_in_schema=False)

    @router.post(SIGN_IN_PATH)
    @requires(OPEN)
    async def sign_in(request: Request) -> Response:
        """Exchange an API key for a session."""
        origin = client_address_of(request.scope) or ""
        form = await _form(request)
        key, wanted = form.get("key", [""])[0].strip(), _local_path(form.get("next", ["/"])[0])
        access.failed_logins.check(origin, key)
        signed_in = await access.authenticator.sign_in(key, origin)
        if signed_in is None:
            access.failed_logins.failed(origin, key, where="sign-in", request=request_id_of(request))
            return RedirectResponse(f"{SIGN_IN_PATH}?wrong=1&next={quote(wanted)}", 303)
        access.failed_logins.passed(origin, key)
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
        """End the session and delete its cookie."""
        token = read_credentials(dict(request.scope["headers"])).session
        if token is not None:
            await access.authenticator.sign_out(token)
        response = RedirectResponse(SIGN_IN_PATH, 303)
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax", secure=is_https)
        return response

    return router


async def _form(request: Request) -> dict[str, list[str]]:
    """Read the form, with strict limits because the sender is not authenticated yet."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise TooLarge(f"the form has more than {MAX_FORM_BYTES:,} bytes", remedy="send only the key")
    try:
        return parse_qs(body.decode("utf-8", "replace"), max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        remedy = "send only the fields key and next"
        raise Invalid(f"the form has more than {MAX_FORM_FIELDS} fields", remedy=remedy) from None


def _local_path(wanted: str) -> str:
    """Return a local path, otherwise "/": prevents open redirects."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_local else "/"
