"""The shift calendar: a week of squads and days, the newest changes, and the button that takes one back."""

from __future__ import annotations

from datetime import date as Date
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...inbound.calendar.service import CalendarService
from ...inbound.domain import slot
from ...model.errors import NotFound, TidingsError
from ..renderer import PageRenderer, ViewRoute, redirect

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


def routes(shifts: CalendarService, frame: PageRenderer) -> list[ViewRoute]:
    """Its routes."""

    async def show(request: Request) -> Response:
        """One week; `?week=` names another."""
        query = request.query_params
        week = await shifts.week(query.get("week") or None)
        changes = (await shifts.changes(limit=NEWEST)).items
        return frame.page(
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
        """Take one change back."""
        target: dict[str, str] = {}
        if week := request.query_params.get("week"):
            target["week"] = week
        try:
            await shifts.undo(request.path_params["change"])
        except NotFound:
            raise
        except TidingsError as error:
            target["problem"] = str(error)
        return redirect("/calendar", **target)

    return [
        ViewRoute("GET", "/calendar", show, READ, whole=True),
        ViewRoute("POST", "/calendar/changes/{change}/undo", undo, OPERATE, whole=True),
    ]


def _heading(date: str, today: str) -> dict[str, Any]:
    day = Date.fromisoformat(date)
    return {"date": date, "name": f"{day:%a}", "number": f"{day:%d %b}", "is_today": date == today}


def _bar(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where each piece stands on a bar of 48 half hours."""
    return [
        {**run, "x": slot(run["start"]), "width": (slot(run["end"]) or 48) - slot(run["start"])}
        for run in runs
    ]
