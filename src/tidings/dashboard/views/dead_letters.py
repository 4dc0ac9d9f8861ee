"""Dead letters by cause; retry or discard whole causes, with a rate limit, or selected messages."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...model.errors import Conflict, NotFound
from ...outbound.dead_letters import MAX_COUNTED
from ...outbound.service import OutboundService
from ..forms import number, query_values, read_form, read_multi_form
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import next_page_query, redirect, redirect_on_error, unknown_action

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the dead letter routes."""
    views = _DeadLetterViews(app.outbound, renderer)
    return [
        ViewRoute("GET", "/dead", views.show),
        ViewRoute("POST", "/dead/chosen/{action}", views.act_on_selected, OPERATE),
        ViewRoute("POST", "/dead/{action}", views.act_on_cause, OPERATE),
    ]


class _DeadLetterViews(Views[OutboundService]):
    async def show(self, request: Request) -> Response:
        """List dead letters, most frequent cause first."""
        asked = query_values(request, "channel", "category", "unknown", "after")
        filters: dict[str, Any] = {name: asked[name] for name in ("channel", "category") if name in asked}
        unknown = {"yes": True, "no": False}.get(asked.get("unknown", ""))
        page = await self._service.dead.page(limit=PAGE, unknown=unknown, after=asked.get("after"), **filters)
        groups = await self._service.dead.groups()
        return self._renderer.page(
            "dead_letters.html",
            groups=groups,
            is_more=sum(group["count"] for group in groups) >= MAX_COUNTED,
            items=page.items,
            is_filtered=bool(filters) or unknown is not None,
            done=request.query_params.get("done"),
            problem=request.query_params.get("problem"),
            more=next_page_query(page, asked),
        )

    async def act_on_cause(self, request: Request) -> Response:
        """Retry or discard all messages with one cause; uncertain ones only if the form says so."""
        form, action = await read_form(request), request.path_params["action"]
        filters: dict[str, Any] = {name: form[name] for name in ("channel", "category") if name in form}
        filters["unknown"] = form.get("unknown") == "yes"
        with redirect_on_error("/dead"):
            match action:
                case "retry":
                    rate = number(form, "per_second")
                    swept = await self._service.dead.retry_all(per_second=rate, **filters)
                    word = "retried" if rate is None else f"retried, {rate:g} per second"
                case "discard":
                    swept, word = await self._service.dead.discard_all(**filters), "discarded"
                case _:
                    raise unknown_action(action)
        rest = "; more are left, repeat the action" if swept.more else ""
        return redirect("/dead", done=f"{swept.moved:,} {word}{rest}")

    async def act_on_selected(self, request: Request) -> Response:
        """Retry or discard the selected messages; uncertain ones only if the form says so."""
        form, action = await read_multi_form(request), request.path_params["action"]
        if action not in ("retry", "discard"):
            raise unknown_action(action)
        moved = uncertain = gone = 0
        for id_ in form.get("id", [])[:PAGE]:
            try:
                message = await self._service.messages.show(id_)
                if action == "retry" and message["unknown"] and "unknown" not in form:
                    uncertain += 1
                    continue
                moving = self._service.messages.retry if action == "retry" else self._service.messages.discard
                await moving(id_)
                moved += 1
            except (NotFound, Conflict):
                gone += 1
        done = [f"{moved:,} {'retried' if action == 'retry' else 'discarded'}"]
        done += [f"{uncertain:,} uncertain skipped: include them to retry them"] if uncertain else []
        done += [f"{gone:,} no longer dead letters"] if gone else []
        return redirect("/dead", done="; ".join(done))
