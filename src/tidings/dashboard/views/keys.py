"""API keys: list, create, rotate and revoke. A secret is shown once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import ADMIN, AREAS, DEFAULT_TENANT, Role
from ...access.service import AccessService
from ...app import App
from ...model.errors import TidingsError
from ..forms import integer, query_values, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the API key routes."""
    views = _ApiKeyViews(app.access, renderer)
    return [
        ViewRoute("GET", "/keys", views.page, ADMIN),
        ViewRoute("POST", "/keys", views.create, ADMIN, noted=True),
        ViewRoute("POST", "/keys/{id}/{action}", views.act, ADMIN, noted=True),
    ]


class _ApiKeyViews(Views[AccessService]):
    async def page(self, request: Request) -> Response:
        """List keys, newest first."""
        return await self._page(request, problem=request.query_params.get("problem"))

    async def create(self, request: Request) -> Response:
        """Create a key; the response shows it once."""
        form = await read_form(request)
        try:
            body: dict[str, Any] = {
                name: form[name] for name in ("name", "role", "tenant", "expires_in") if name in form
            }
            body |= {"scopes": split_words(form.get("scopes", "")), "rate": integer(form, "rate")}
            made = await self._service.keys.create(body)
        except TidingsError as error:
            return await self._page(request, error.status, form=form, error=error)
        return await self._page(request, made=made)

    async def act(self, request: Request) -> Response:
        """Rotate or revoke a key."""
        id_, action = request.path_params["id"], request.path_params["action"]
        with redirect_on_error("/keys"):
            match action:
                case "rotate":
                    return await self._page(request, made=await self._service.keys.rotate(id_))
                case "revoke":
                    await self._service.keys.revoke(id_)
                case _:
                    raise unknown_action(action)
        return redirect("/keys")

    async def _page(self, request: Request, status: int = 200, **given: Any) -> Response:
        shown: Mapping[str, Any] = {"form": {}, "error": None, "made": None, "problem": None} | given
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        after = query_values(request, "after").get("after")
        found = await self._service.keys.page(of="*" if runs_engine else None, limit=PAGE, after=after)
        return self._renderer.page(
            "keys.html",
            status,
            items=found.items,
            more=next_page_query(found),
            roles=list(Role),
            areas=AREAS,
            runs_engine=runs_engine,
            is_open=await self._service.authenticator.is_open(),
            **shown,
        )
