"""Keys: who may call, a form for a new one, and what may be done to each. A secret is shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import ADMIN, AREAS, DEFAULT_TENANT, Role
from ...access.service import AccessService
from ...model.errors import TidingsError
from ..forms import integer, query_values, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50


def routes(access: AccessService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _ApiKeyViews(access, frame)
    return [
        ViewRoute("GET", "/keys", views.page, ADMIN),
        ViewRoute("POST", "/keys", views.create, ADMIN, noted=True),
        ViewRoute("POST", "/keys/{id}/{action}", views.act, ADMIN, noted=True),
    ]


class _ApiKeyViews:
    def __init__(self, access: AccessService, frame: PageRenderer) -> None:
        self._access = access
        self._frame = frame

    async def page(self, request: Request) -> Response:
        """Keys, newest first."""
        return await self._page(request, problem=request.query_params.get("problem"))

    async def create(self, request: Request) -> Response:
        """A new key, shown on the page that follows and never again."""
        form = await read_form(request)
        try:
            body: dict[str, Any] = {
                name: form[name] for name in ("name", "role", "tenant", "expires_in") if name in form
            }
            body |= {"scopes": split_words(form.get("scopes", "")), "rate": integer(form, "rate")}
            made = await self._access.keys.create(body)
        except TidingsError as error:
            return await self._page(request, error.status, form=form, error=error)
        return await self._page(request, made=made)

    async def act(self, request: Request) -> Response:
        """Another secret, or none that opens."""
        id_, action = request.path_params["id"], request.path_params["action"]
        with redirect_on_error("/keys"):
            match action:
                case "rotate":
                    return await self._page(request, made=await self._access.keys.rotate(id_))
                case "revoke":
                    await self._access.keys.revoke(id_)
                case _:
                    raise unknown_action(action)
        return redirect("/keys")

    async def _page(self, request: Request, status: int = 200, **given: Any) -> Response:
        shown: Mapping[str, Any] = {"form": {}, "error": None, "made": None, "problem": None} | given
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        after = query_values(request, "after").get("after")
        found = await self._access.keys.page(of="*" if runs_engine else None, limit=PAGE, after=after)
        return self._frame.page(
            "keys.html",
            status,
            items=found.items,
            more=next_page_query(found),
            roles=list(Role),
            areas=AREAS,
            runs_engine=runs_engine,
            is_open=await self._access.authenticator.is_open(),
            **shown,
        )
