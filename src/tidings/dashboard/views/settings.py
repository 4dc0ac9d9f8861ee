"""The settings of this process, to look at: what holds, where it was set, and what for; secrets masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import ADMIN
from ...config import Settings
from ..renderer import PageRenderer, ViewRoute

TABLES = ("channels", "policies", "inbound", "alerts")


def routes(settings: Settings, frame: PageRenderer) -> list[ViewRoute]:
    """Its route."""
    about = {item.name: item.metadata.get("about", "") for item in fields(settings)}

    async def show(_: Request) -> Response:
        """All of them, as they hold now."""
        plain = settings.describe()
        simple = [
            {
                "name": name,
                "value": _shown(value),
                "origin": settings.origins.get(name),
                "about": about.get(name, ""),
            }
            for name, value in plain.items()
            if name not in TABLES
        ]
        tables = [(name, list(_flat(plain[name]))) for name in TABLES if plain.get(name)]
        return frame.page("settings.html", simple=simple, tables=tables)

    return [ViewRoute("GET", "/settings", show, ADMIN, whole=True)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Tables within tables, one line for each value."""
    for name, inner in value.items():
        place = f"{prefix}{name}"
        if isinstance(inner, Mapping) and inner:
            yield from _flat(inner, f"{place}.")
        else:
            yield place, _shown(inner)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "–"
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
