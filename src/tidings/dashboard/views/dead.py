"""Dead letters by cause, and one by one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...outbound.desk import Desk
from ..forms import read_form
from ..frame import Frame, Way, no_such

PAGE = 50


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def show(request: Request) -> Response:
        """What failed for good, most frequent cause first."""
        query = dict(request.query_params)
        chosen: dict[str, Any] = {name: query[name] for name in ("channel", "category") if query.get(name)}
        unknown = {"yes": True, "no": False}.get(query.get("held", ""))
        page = await desk.dead.page(limit=PAGE, unknown=unknown, after=query.get("after"), **chosen)
        return frame.page(
            "dead.html",
            groups=await desk.dead.groups(),
            items=page.items,
            is_filtered=bool(chosen) or unknown is not None,
            done=query.pop("done", None),
            more=urlencode(query | {"after": page.next}) if page.next else None,
        )

    async def sweep(request: Request) -> Response:
        """Retry or discard all of one cause; those in doubt only where the form says so."""
        form, action = await read_form(request), request.path_params["action"]
        which: dict[str, Any] = {name: form[name] for name in ("channel", "category") if name in form}
        which["unknown"] = form.get("held") == "yes"
        match action:
            case "retry":
                swept, word = await desk.dead.retry_all(**which), "started afresh"
            case "discard":
                swept, word = await desk.dead.discard_all(**which), "discarded"
            case _:
                raise no_such(action)
        more = "; more are left, do it again" if swept.more else ""
        return RedirectResponse(f"/dead?{urlencode({'done': f'{swept.moved:,} {word}{more}'})}", 303)

    return [Way("GET", "/dead", show), Way("POST", "/dead/{action}", sweep)]
