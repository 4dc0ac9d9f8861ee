"""Sign-in for browsers: a key is shown once, and a cookie stands for it from then on."""

from __future__ import annotations

from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ...access.audit import line
from ...access.desk import AccessDesk
from ...access.door import COOKIE, SESSION
from ...access.rules import OPEN, allowed
from ...model.time import SECOND
from ..credentials import shown
from ..gate import SIGN_IN, origin_of


def routes(access: AccessDesk) -> APIRouter:
    """Sign in and out; the form itself is a page of the dashboard."""
    router = APIRouter(include_in_schema=False)

    @router.post(SIGN_IN)
    @allowed(OPEN)
    async def sign_in(request: Request) -> Response:
        """Exchange a key for a session."""
        origin = origin_of(request.scope) or ""
        access.wrong_keys.check(origin)
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        key, wanted = form.get("key", [""])[0].strip(), _path(form.get("next", ["/"])[0])
        signed_in = await access.door.sign_in(key, origin)
        if signed_in is None:
            access.wrong_keys.note(origin)
            return RedirectResponse(f"{SIGN_IN}?wrong=1&next={quote(wanted)}", 303)
        token, caller = signed_in
        await access.audit.note(line(caller, "sign-in", status=303)._replace(origin=origin))
        response = RedirectResponse(wanted, 303)
        response.set_cookie(
            COOKIE, token, max_age=SESSION // SECOND, httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    @router.post("/sign-out")
    @allowed(OPEN)
    async def sign_out(request: Request) -> Response:
        """End the session, here and in this browser."""
        token = shown(dict(request.scope["headers"])).session
        if token is not None:
            await access.door.sign_out(token)
        response = RedirectResponse(SIGN_IN, 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
        return response

    return router


def _path(wanted: str) -> str:
    """Only a place on this server: anything else would send people elsewhere."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_local else "/"
