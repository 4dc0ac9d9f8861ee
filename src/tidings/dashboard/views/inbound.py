"""Inbound messages, cases that need a person, conversations, the roster and the shift calendar."""

from __future__ import annotations

from datetime import date as Date
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...inbound import inbox
from ...inbound.domain import slot
from ...inbound.escalation.cases import STATES, case_reasons
from ...inbound.roster import ROLES
from ...model.errors import TidingsError
from ..forms import Form, query_values
from ..renderer import Views, get, post
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50
ROSTER_PAGE = 100
LOGGED = 20
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


class InboxViews(Views):
    """The inbox: inbound messages, and one of them with its timeline."""

    @get("/inbox")
    async def page(self, request: Request) -> Response:
        """List inbound messages, newest first."""
        asked = query_values(request, "state", "source", "conversation", "sender", "after")
        found = await self._app.inbound.inbox.page(limit=PAGE, **asked)
        sources = await self._app.inbound.inbox.sources()
        return self._renderer.listing("inbox.html", found, asked, states=inbox.STATES, sources=sources)

    @get("/inbox/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one message with its state and the reason for it."""
        message = await self._app.inbound.inbox.show(id_)
        return self._renderer.page("inbox_message.html", message=message, problem=request.query_params.get("problem"))

    @post("/inbox/{id}/retry", OPERATE)
    async def retry(self, request: Request, form: Form, id_: str) -> Response:
        with redirect_on_error(f"/inbox/{id_}"):
            await self._app.inbound.inbox.retry(id_)
        return redirect(f"/inbox/{id_}")


class CaseViews(Views):
    """Cases that need a person, notices to admins, and conversations."""

    @get("/cases")
    async def page(self, request: Request) -> Response:
        """List open cases, newest first, and the notices to admins."""
        asked = query_values(request, "state", "reason", "after")
        found = await self._app.workflows.cases.page(limit=PAGE, **asked)
        notices = await self._app.workflows.cases.notices(limit=10)
        return self._renderer.listing(
            "cases.html", found, asked, notices=notices.items, states=STATES, reasons=case_reasons()
        )

    @get("/cases/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one case with the latest messages of its conversation."""
        case = await self._app.workflows.cases.show(id_)
        return self._renderer.page("case.html", case=case, problem=request.query_params.get("problem"))

    @post("/cases/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        with redirect_on_error(f"/cases/{id_}"):
            match action:
                case "claim":
                    await self._app.workflows.cases.claim(id_, form.get("by", ""))
                case "answer":
                    await self._app.workflows.cases.answer(id_, form.get("text", ""))
                case "handback":
                    await self._app.workflows.cases.hand_back(id_, verdict=form.get("verdict"))
                case "close":
                    await self._app.workflows.cases.close(id_, note=form.get("note", ""))
                case _:
                    raise unknown_action(action)
        return redirect(f"/cases/{id_}")

    @post("/notices/{id}/acknowledge", OPERATE)
    async def acknowledge(self, request: Request, form: Form, id_: str) -> Response:
        await self._app.workflows.cases.acknowledge(id_, form.get("by") or "the dashboard")
        return redirect("/cases")

    @get("/conversations")
    async def list_conversations(self, request: Request) -> Response:
        """List conversations, newest message first."""
        found = await self._app.workflows.conversations.page(
            limit=PAGE, after=request.query_params.get("after") or None
        )
        return self._renderer.page("conversations.html", items=found.items, more=next_page_query(found))

    @get("/conversations/{name:path}")
    async def conversation(self, request: Request, name: str) -> Response:
        """Show one conversation with every processing step."""
        found = await self._app.workflows.conversations.show(name, after=request.query_params.get("after") or None)
        more = urlencode({"after": found["next"]}) if found["next"] else None
        return self._renderer.page("conversation.html", talk=found, more=more)


class RosterViews(Views):
    """The roster: the people whose messages are processed, and the history of changes."""

    @get("/roster")
    async def page(self, request: Request) -> Response:
        """List people by name."""
        query = request.query_params
        squad = query.get("squad", "").strip() or None
        found = await self._app.inbound.roster.page(squad=squad, limit=ROSTER_PAGE, after=query.get("after") or None)
        return self._renderer.listing(
            "roster.html",
            found,
            {"squad": squad or ""},
            squad=squad,
            roles=ROLES,
            sources=sorted(self._app.inbound.sources),
            log=(await self._app.inbound.roster.log(limit=LOGGED)).items,
            problem=query.get("problem"),
        )

    @post("/roster/{action}", OPERATE)
    async def act(self, request: Request, form: Form, action: str) -> Response:
        """Add, change or remove a person."""
        try:
            match action:
                case "put":
                    await self._app.inbound.roster.put(form)
                case "remove":
                    await self._app.inbound.roster.remove(form.get("sender", ""), form.get("source"))
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            return redirect("/roster", problem=str(error))
        return redirect("/roster")


class ShiftCalendarViews(Views):
    """The shift calendar: one week of squads and days, the newest changes, and undo."""

    @get("/calendar", engine_wide=True)
    async def show(self, request: Request) -> Response:
        """Show one week: the current one, or the one in `?week=`."""
        query = request.query_params
        week = await self._app.shifts.week(query.get("week") or None)
        changes = (await self._app.shifts.changes(limit=NEWEST)).items
        return self._renderer.page(
            "calendar.html",
            week=week,
            days=[_heading(day["date"], week["today"]) for day in week["days"]],
            rows=[(squad, [_bar(day["squads"][squad]) for day in week["days"]]) for squad in week["squads"]],
            gaps=[_bar(day["gaps"]) for day in week["days"]],
            changes=changes,
            tones=TONES,
            problem=query.get("problem"),
        )

    @post("/calendar/changes/{change}/undo", OPERATE, engine_wide=True)
    async def undo(self, request: Request, form: Form, change: str) -> Response:
        query = query_values(request, "week")
        with redirect_on_error("/calendar", **query):
            await self._app.shifts.undo(change)
        return redirect("/calendar", **query)


def _heading(date: str, today: str) -> dict[str, Any]:
    day = Date.fromisoformat(date)
    return {"date": date, "name": f"{day:%a}", "number": f"{day:%d %b}", "is_today": date == today}


def _bar(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the position of each run on a bar of 48 half hours."""
    return [{**run, "x": slot(run["start"]), "width": (slot(run["end"]) or 48) - slot(run["start"])} for run in runs]
