"""The shift calendar: one week of squads and days, the newest changes, and undo."""

from __future__ import annotations

from datetime import date as Date
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...app import App
from ...inbound.domain import slot
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute
from ..responses import redirect, redirect_on_error

NEWEST = 15
TONES = {
    "planned": "calm",
    "claimed": "busy",
    "confirmed": "good",
    "refused": "bad",
    "unknown": "warn",
    "not_applied": "warn",
    "conflict": "bad",
}


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the shift calendar routes."""
    shifts = app.shifts

    async def show(request: Request) -> Response:
        """Show one week: the current one, or the one in `?week=`."""
        query = request.query_params
        week = await shifts.week(query.get("week") or None)
        changes = (await shifts.changes(limit=NEWEST)).items
        return renderer.page(
            "calendar.html",
            week=week,
            days=[_heading(day["date"], week["today"]) for day in week["days"]],
            rows=[(squad, [_bar(day["squads"][squad]) for day in week["days"]]) for squad in week["squads"]],
            gaps=[_bar(day["gaps"]) for day in week["days"]],
            changes=changes,
            tones=TONES,
            problem=query.get("problem"),
        )

    async def undo(request: Request) -> Response:
        """Undo one change."""
        query = query_values(request, "week")
        with redirect_on_error("/calendar", **query):
            await shifts.undo(request.path_params["change"])
        return redirect("/calendar", **query)

    return [
        ViewRoute("GET", "/calendar", show, READ, whole=True),
        ViewRoute("POST", "/calendar/changes/{change}/undo", undo, OPERATE, whole=True),
    ]


def _heading(date: str, today: str) -> dict[str, Any]:
    day = Date.fromisoformat(date)
    return {"date": date, "name": f"{day:%a}", "number": f"{day:%d %b}", "is_today": date == today}


def _bar(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the position of each run on a bar of 48 half hours."""
    return [{**run, "x": slot(run["start"]), "width": (slot(run["end"]) or 48) - slot(run["start"])} for run in runs]
