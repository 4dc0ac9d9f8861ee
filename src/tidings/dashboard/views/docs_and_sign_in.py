"""Beside the messages: the reference of the API, and the form that asks for a key."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPEN
from ..renderer import PageRenderer, ViewRoute


def routes(api: FastAPI, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def docs(request: Request) -> Response:
        """The routes of the API, from its own description."""
        return frame.page("docs.html", openapi=api.openapi(), base=str(request.base_url).rstrip("/"))

    async def sign_in(request: Request) -> Response:
        """Where a browser shows its key."""
        query = request.query_params
        return frame.page("sign_in.html", wrong="wrong" in query, wanted=query.get("next", "/"))

    return [ViewRoute("GET", "/docs", docs), ViewRoute("GET", "/sign-in", sign_in, OPEN)]
