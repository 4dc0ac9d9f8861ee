"""Adds the dashboard to the API: pages, static files, and the template environment."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path

from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from .. import __version__
from ..access.caller import current_caller
from ..access.permissions import Permission
from ..access.tenant_scope import scope_to_tenant
from ..app import App
from ..model.time import iso
from . import template_filters, views
from .live_updates import LiveStreams
from .navigation import group_of, visible_groups
from .renderer import PageRenderer

HERE = Path(__file__).parent
IMMUTABLE = "public, max-age=31536000, immutable"  # the URL contains a hash of the content


class Dashboard:
    """The mounted dashboard; `close` ends its live streams."""

    def __init__(self, live: LiveStreams) -> None:
        self.close = live.close


def add_dashboard(api: FastAPI, app: App) -> Dashboard:
    """Add the dashboard to an API, behind its middleware."""
    app, live = scope_to_tenant(app), LiveStreams()
    renderer = PageRenderer(app, _environment(app), live, phone_port=_phone_port(app))
    views.add_routes(api, app, renderer)
    api.state.problem_page = renderer.problem
    api.mount("/static", _Files(directory=HERE / "static"), name="static")
    return Dashboard(live)


def _environment(app: App) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    plain, zoned = template_filters.FILTERS, template_filters.FILTERS_WITH_TIME_ZONE
    environment.filters |= {filter_.__name__: filter_ for filter_ in plain}
    environment.filters |= {filter_.__name__: partial(filter_, timezone=app.settings.timezone) for filter_ in zoned}
    environment.globals.update(
        version=__version__,
        asset=cache(_asset),
        now=lambda: iso(app.clock.now()),
        channels=sorted(app.settings.channels),
        phones=_phones(app),
        timezone=app.settings.timezone.key,
        may=_may,
        caller=current_caller,
        tiles=template_filters.TILES,
        on_unknown=template_filters.UNKNOWN_OUTCOME_LABELS,
        navigation=lambda: visible_groups(current_caller()),
        group_of=lambda here: group_of(here, visible_groups(current_caller())),
    )
    return environment


def _may(action: str, *, engine_wide: bool = False) -> bool:
    """Return whether to show a button to the caller; the middleware still authorizes the request."""
    return current_caller().may(Permission(action), engine_wide=engine_wide)


def _phones(app: App) -> list[str]:
    """Return the channels whose messages arrive on the sandbox phone."""
    return sorted(name for name, channel in app.channels.items() if channel.kind == "sandbox")


def _phone_port(app: App) -> int | None:
    return app.settings.sandbox_port if _phones(app) and app.settings.sandbox else None


def _asset(name: str) -> str:
    """Return the URL of a static file, with a hash of its content for cache busting."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={digest}"


class _Files(StaticFiles):
    """Static files that browsers may cache indefinitely."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if scope["query_string"] and response.status_code == 200:
            response.headers["cache-control"] = IMMUTABLE
        return response
