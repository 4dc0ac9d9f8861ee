"""The SLA page: messages sent on time by day and channel, and the figures of the last fifteen minutes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import READ
from ...app import App
from ...migration import job_metrics
from ...outbound.sla import TARGET_SECONDS
from ..renderer import PageRenderer, ViewRoute

DAYS = (7, 30, 90, 400)


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the route of the page."""
    service = app.outbound

    async def page(request: Request) -> Response:
        """Show the report of the chosen days and channel."""
        given, channel = request.query_params.get("days", ""), request.query_params.get("channel") or None
        days = int(given) if given in map(str, DAYS) else 30
        items = await service.sla(days=days, channel=channel)
        sent, on_time = sum(row.sent for row in items), sum(row.on_time for row in items)
        return renderer.page(
            "sla.html", items=items, days=days, choices=DAYS, channel=channel, sent=sent, on_time=on_time,
            target=TARGET_SECONDS, channels=sorted(app.settings.channels), health=await service.health(),
            nodes=[node for node in await service.overview.nodes() if node["state"] == "live"],
            connections=await service.store.read("database_connections"),
            calls=sorted((await job_metrics.read_metrics(service.store)).calls.items()),
        )  # fmt: skip

    return [ViewRoute("GET", "/sla", page, READ, whole=True)]
