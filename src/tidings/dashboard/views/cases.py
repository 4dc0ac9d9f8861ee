"""Cases that need a person, notices to admins, and conversations."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...inbound.escalation.cases import STATES, case_reasons
from ..forms import query_values, read_form
from ..renderer import PageRenderer, ViewRoute
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the case, notice and conversation routes."""
    workflows = app.workflows
    cases, conversations = workflows.cases, workflows.conversations

    async def page(request: Request) -> Response:
        """List open cases, newest first, and the notices to admins."""
        asked = query_values(request, "state", "reason", "after")
        found = await cases.page(limit=PAGE, **asked)
        notices = await cases.notices(limit=10)
        return renderer.listing(
            "cases.html", found, asked, notices=notices.items, states=STATES, reasons=case_reasons()
        )

    async def show(request: Request) -> Response:
        """Show one case with the latest messages of its conversation."""
        case = await cases.show(request.path_params["id"])
        return renderer.page("case.html", case=case, problem=request.query_params.get("problem"))

    async def act(request: Request) -> Response:
        """Perform an action on one case."""
        id_, action = request.path_params["id"], request.path_params["action"]
        form = await read_form(request)
        with redirect_on_error(f"/cases/{id_}"):
            match action:
                case "claim":
                    await cases.claim(id_, form.get("by", ""))
                case "answer":
                    await cases.answer(id_, form.get("text", ""))
                case "handback":
                    await cases.hand_back(id_, verdict=form.get("verdict"))
                case "close":
                    await cases.close(id_, note=form.get("note", ""))
                case _:
                    raise unknown_action(action)
        return redirect(f"/cases/{id_}")

    async def acknowledge(request: Request) -> Response:
        """Acknowledge a notice."""
        form = await read_form(request)
        await cases.acknowledge(request.path_params["id"], form.get("by") or "the dashboard")
        return redirect("/cases")

    async def list_conversations(request: Request) -> Response:
        """List conversations, newest message first."""
        found = await conversations.page(limit=PAGE, after=request.query_params.get("after") or None)
        return renderer.page("conversations.html", items=found.items, more=next_page_query(found))

    async def conversation(request: Request) -> Response:
        """Show one conversation with every processing step."""
        name = request.path_params["name"]
        found = await conversations.show(name, after=request.query_params.get("after") or None)
        more = urlencode({"after": found["next"]}) if found["next"] else None
        return renderer.page("conversation.html", talk=found, more=more)

    return [
        ViewRoute("GET", "/cases", page),
        ViewRoute("GET", "/cases/{id}", show),
        ViewRoute("POST", "/cases/{id}/{action}", act, OPERATE),
        ViewRoute("POST", "/notices/{id}/acknowledge", acknowledge, OPERATE),
        ViewRoute("GET", "/conversations", list_conversations),
        ViewRoute("GET", "/conversations/{name:path}", conversation),
    ]
