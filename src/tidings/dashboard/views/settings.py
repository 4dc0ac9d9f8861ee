"""The effective settings of this process with their sources and descriptions; secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import ADMIN
from ...app import App
from ..renderer import PageRenderer, ViewRoute

TABLES = ("channels", "policies", "inbound", "alerts")


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the route of the settings page."""
    settings = app.settings
    about = {item.name: item.metadata.get("about", "") for item in fields(settings)}

    async def show(_: Request) -> Response:
        """Show all settings."""
        plain = settings.describe()
        simple = [
            {"name": name, "value": _shown(value), "origin": settings.origins.get(name), "about": about.get(name, "")}
            for name, value in plain.items()
            if name not in TABLES
        ]
        tables = [(name, list(_flat(plain[name]))) for name in TABLES if plain.get(name)]
        return renderer.page("settings.html", simple=simple, tables=tables)

    return [ViewRoute("GET", "/settings", show, ADMIN, whole=True)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested tables into one line per value."""
    for name, inner in value.items():
        path = f"{prefix}{name}"
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{path}.")
        else:
            yield path, _shown(inner)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "–"
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
