"""Dead letters by cause, and one by one; whole causes or chosen ones are retried, at a rate if wanted."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...model.errors import Conflict, NotFound
from ...outbound.dead_letters import MAX_COUNTED
from ...outbound.service import OutboundService
from ..forms import number, query_values, read_form, read_multi_form
from ..renderer import (
    PageRenderer,
    ViewRoute,
    Views,
    next_page_query,
    redirect,
    redirect_on_error,
    unknown_action,
)

PAGE = 50


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _DeadLetterViews(desk, frame)
    return [
        ViewRoute("GET", "/dead", views.show),
        ViewRoute("POST", "/dead/chosen/{action}", views.some, OPERATE),
        ViewRoute("POST", "/dead/{action}", views.sweep, OPERATE),
    ]


class _DeadLetterViews(Views):
    async def show(self, request: Request) -> Response:
        """What failed for good, most frequent cause first."""
        asked = query_values(request, "channel", "category", "unknown", "after")
        which: dict[str, Any] = {name: asked[name] for name in ("channel", "category") if name in asked}
        unknown = {"yes": True, "no": False}.get(asked.get("unknown", ""))
        page = await self._desk.dead.page(limit=PAGE, unknown=unknown, after=asked.get("after"), **which)
        groups = await self._desk.dead.groups()
        return self._frame.page(
            "dead.html",
            groups=groups,
            is_more=sum(group["count"] for group in groups) >= MAX_COUNTED,
            items=page.items,
            is_filtered=bool(which) or unknown is not None,
            done=request.query_params.get("done"),
            problem=request.query_params.get("problem"),
            more=next_page_query(page, asked),
        )

    async def sweep(self, request: Request) -> Response:
        """Retry or discard all of one cause; those in doubt only where the form says so."""
        form, action = await read_form(request), request.path_params["action"]
        which: dict[str, Any] = {name: form[name] for name in ("channel", "category") if name in form}
        which["unknown"] = form.get("unknown") == "yes"
        with redirect_on_error("/dead"):
            match action:
                case "retry":
                    rate = number(form, "per_second")
                    swept = await self._desk.dead.retry_all(per_second=rate, **which)
                    word = "started afresh" if rate is None else f"started afresh, {rate:g} a second"
                case "discard":
                    swept, word = await self._desk.dead.discard_all(**which), "discarded"
                case _:
                    raise unknown_action(action)
        rest = "; more are left, do it again" if swept.more else ""
        return redirect("/dead", done=f"{swept.moved:,} {word}{rest}")

    async def some(self, request: Request) -> Response:
        """Retry or discard those that were ticked; those in doubt only where the form says so."""
        form, action = await read_multi_form(request), request.path_params["action"]
        if action not in ("retry", "discard"):
            raise unknown_action(action)
        moved = doubtful = gone = 0
        for id_ in form.get("id", [])[:PAGE]:
            try:
                message = await self._desk.messages.show(id_)
                if action == "retry" and message["unknown"] and "unknown" not in form:
                    doubtful += 1
                    continue
                moving = self._desk.messages.retry if action == "retry" else self._desk.messages.discard
                await moving(id_)
                moved += 1
            except (NotFound, Conflict):
                gone += 1
        told = [f"{moved:,} {'started afresh' if action == 'retry' else 'discarded'}"]
        told += [f"{doubtful:,} in doubt left alone: tick that they may arrive twice"] if doubtful else []
        told += [f"{gone:,} were no dead letters any more"] if gone else []
        return redirect("/dead", done="; ".join(told))
