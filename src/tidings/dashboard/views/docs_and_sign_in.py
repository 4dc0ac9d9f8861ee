"""The API reference and the sign-in form."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPEN
from ...app import App
from ..renderer import PageRenderer, ViewRoute


def routes(_: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the routes of the API reference and the sign-in form."""

    async def docs(request: Request) -> Response:
        """Show the routes of the API, from its OpenAPI document."""
        base = str(request.base_url).rstrip("/")
        return renderer.page("docs.html", openapi=request.app.openapi(), base=base)

    async def sign_in(request: Request) -> Response:
        """Show the form that asks for an API key."""
        query = request.query_params
        return renderer.page("sign_in.html", wrong="wrong" in query, wanted=query.get("next", "/"))

    return [ViewRoute("GET", "/docs", docs), ViewRoute("GET", "/sign-in", sign_in, OPEN)]
