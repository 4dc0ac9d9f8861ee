"""Alerts, the SLA, the effective settings, the API reference and the sign-in form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import ADMIN, OPEN, OPERATE
from ...migration import job_metrics
from ...outbound.sla import TARGET_SECONDS
from ..forms import Form
from ..renderer import Views, get, post
from ..responses import redirect, redirect_on_error

PAGE = 50
DAYS = (7, 30, 90, 400)
TABLES = ("channels", "policies", "inbound", "alerts")


class EngineViews(Views):
    @get("/alerts", engine_wide=True)
    async def alerts(self, request: Request) -> Response:
        """List open alerts, with `past` also resolved ones."""
        past, after = bool(request.query_params.get("past")), request.query_params.get("after") or None
        found = await self._outbound.alerts.page(past=past, limit=PAGE, after=after)
        asked, problem = {"past": "yes"} if past else {}, request.query_params.get("problem")
        return self._renderer.listing("alerts.html", found, asked, past=past, after=after, problem=problem)

    @post("/alerts/{id}/acknowledge", OPERATE, engine_wide=True)
    async def acknowledge(self, request: Request, form: Form, id_: str) -> Response:
        with redirect_on_error("/alerts"):
            await self._outbound.alerts.acknowledge(id_, form.get("by", ""))
        return redirect("/alerts")

    @get("/sla", engine_wide=True)
    async def sla(self, request: Request) -> Response:
        """Show the messages sent on time, by day and channel, and the figures of the last fifteen minutes."""
        given, channel = request.query_params.get("days", ""), request.query_params.get("channel") or None
        days = int(given) if given in map(str, DAYS) else 30
        items = await self._outbound.sla(days=days, channel=channel)
        sent, on_time = sum(row.sent for row in items), sum(row.on_time for row in items)
        return self._renderer.page(
            "sla.html", items=items, days=days, choices=DAYS, channel=channel, sent=sent, on_time=on_time,
            target=TARGET_SECONDS, channels=sorted(self._app.settings.channels), health=await self._outbound.health(),
            nodes=[node for node in await self._outbound.overview.nodes() if node["state"] == "live"],
            connections=await self._outbound.store.read("database_connections"),
            calls=sorted((await job_metrics.read_metrics(self._outbound.store)).calls.items()),
        )  # fmt: skip

    @get("/settings", ADMIN, engine_wide=True)
    async def settings(self, _: Request) -> Response:
        """Show the effective settings of this process; secrets are masked."""
        settings = self._app.settings
        about = {item.name: item.metadata.get("about", "") for item in fields(settings)}
        plain = settings.describe()
        simple = [
            {"name": name, "value": _shown(value), "origin": settings.origins.get(name), "about": about.get(name, "")}
            for name, value in plain.items()
            if name not in TABLES
        ]
        tables = [(name, list(_flat(plain[name]))) for name in TABLES if plain.get(name)]
        return self._renderer.page("settings.html", simple=simple, tables=tables)

    @get("/docs")
    async def docs(self, request: Request) -> Response:
        """Show the routes of the API, from its OpenAPI document."""
        base = str(request.base_url).rstrip("/")
        return self._renderer.page("docs.html", openapi=request.app.openapi(), base=base)

    @get("/sign-in", OPEN)
    async def sign_in(self, request: Request) -> Response:
        query = request.query_params
        return self._renderer.page("sign_in.html", wrong="wrong" in query, wanted=query.get("next", "/"))


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
