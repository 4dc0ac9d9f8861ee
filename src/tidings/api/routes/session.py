"""Sign-in for browsers: a key is shown once, and a cookie stands for it from then on."""

from __future__ import annotations

from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ...model.time import SECOND
from ..gate import SIGN_IN
from ..keys import COOKIE, SESSION, Keys


def routes(keys: Keys) -> APIRouter:
    """Sign in and out; the form itself is a page of the dashboard."""
    router = APIRouter(include_in_schema=False)

    @router.post(SIGN_IN)
    async def sign_in(request: Request) -> Response:
        """Exchange a key for a session."""
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        key, wanted = form.get("key", [""])[0].strip(), _path(form.get("next", ["/"])[0])
        session = keys.session(key)
        if session is None:
            return RedirectResponse(f"{SIGN_IN}?wrong=1&next={quote(wanted)}", 303)
        response = RedirectResponse(wanted, 303)
        response.set_cookie(
            COOKIE, session, max_age=SESSION // SECOND, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    @router.post("/sign-out")
    async def sign_out() -> Response:
        """Forget the session in this browser."""
        response = RedirectResponse(SIGN_IN, 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    return router


def _path(wanted: str) -> str:
    """Only a place on this server: anything else would send people elsewhere."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_local else "/"
