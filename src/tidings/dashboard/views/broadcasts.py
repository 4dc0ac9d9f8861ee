"""Broadcasts with live progress, the page of one with its recipients and actions, and the form for a new one."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, SEND
from ...model.errors import TidingsError
from ..forms import Form, integer, number, parse_pairs, query_values, split_lines
from ..live_updates import Fragments
from ..renderer import Views, get, post
from ..responses import json_response, next_page_query, pick_action, redirect, redirect_on_error

PLAIN = ("channel", "name", "xref", "timezone", "list")
FLAGS = ("recipient_timezone", "skip_bad")
PAGE = 50
RECIPIENTS = 50


class BroadcastViews(Views):
    @get("/broadcasts/new")
    async def blank(self, request: Request) -> Response:
        """Show the form; the query may preselect a list, a template or a channel."""
        default = "phone" if "phone" in self._outbound.contacts.channels else self._outbound.contacts.channels[:1]
        preset = query_values(request, "list", "template", "channel")
        return await self._page({"trigger": "MANUAL", "channel": "".join(default), **preset})

    @post("/broadcasts/preview", READ)
    async def preview(self, request: Request, form: Form) -> Response:
        """Return the number of recipients and the first messages, while the form is being filled in."""
        return json_response({"preview": await self._preview(form)})

    @post("/broadcasts", SEND)
    async def create(self, request: Request, form: Form) -> Response:
        """Create the broadcast, or only preview it; an error is shown next to its field."""
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._outbound.broadcast_creator.create(_body(form), key=form.get("key"))
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/broadcasts/{made.answer['id']}")

    async def _preview(self, form: Form) -> str:
        try:
            found = await self._outbound.broadcast_creator.foresee(_body(form))
        except TidingsError as error:
            return self._renderer.piece("broadcast_preview.html", error=error)
        return self._renderer.piece("broadcast_preview.html", found=found, error=None)

    async def _page(self, form: Form, error: TidingsError | None = None) -> Response:
        templates = await self._outbound.templates.page(limit=200)
        has_recipients = any(name in form for name in ("list", "addresses"))
        return self._renderer.form(
            "broadcast_form.html",
            form,
            error,
            lists=await self._outbound.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=await self._preview(form) if has_recipients and error is None else "",
        )

    @get("/broadcasts")
    async def page(self, request: Request) -> Response:
        """List broadcasts, newest first."""
        asked = query_values(request, "state", "xref", "after")
        found = await self._outbound.broadcasts.page(limit=PAGE, **asked)
        rows = self._renderer.piece("broadcasts.html", items=found.items, is_filtered=bool(asked))
        return self._renderer.listing("broadcasts.html", found, asked, rows=rows)

    @get("/broadcasts/live")
    async def live_page(self, request: Request) -> Response:
        async def render() -> Fragments:
            page = await self._outbound.broadcasts.page(limit=PAGE)
            return {"broadcasts": self._renderer.piece("broadcasts.html", items=page.items)}

        return await self._renderer.answer_live(request, render)

    @get("/broadcasts/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one broadcast: progress, counts, recipients and allowed actions."""
        query = request.query_params
        state, after = query.get("state") or None, query.get("after") or None
        broadcast, fragments = await self._outbound.broadcasts.show(id_), await self._render(id_)
        recipients = await self._outbound.broadcasts.recipients(id_, state=state, limit=RECIPIENTS, after=after)
        return self._renderer.page(
            "broadcast.html",
            broadcast=broadcast,
            fragments=fragments,
            recipients=recipients.items,
            state=state,
            more=next_page_query(recipients, {"state": state or ""}),
            problem=query.get("problem"),
        )

    @get("/broadcasts/{id}/live")
    async def live(self, request: Request, id_: str) -> Response:
        return await self._renderer.answer_live(request, lambda: self._render(id_))

    @post("/broadcasts/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        """Perform an action; if the state does not allow it, show why."""
        broadcasts = self._outbound.broadcasts
        with redirect_on_error(f"/broadcasts/{id_}"):
            if action == "retry":
                await broadcasts.retry(id_, unknown=form.get("unknown") == "yes")
            else:
                await pick_action(broadcasts, action, "trigger", "pause", "resume", "cancel")(id_)
        return redirect(f"/broadcasts/{id_}")

    async def _render(self, id_: str) -> Fragments:
        broadcast, piece = await self._outbound.broadcasts.show(id_), self._renderer.piece
        return {
            "status": piece("broadcast_state.html", broadcast=broadcast),
            "actions": piece("broadcast_actions.html", broadcast=broadcast),
            "facts": piece("broadcast_facts.html", broadcast=broadcast),
        }


def _body(form: Form) -> dict[str, Any]:
    """Return the form as the body of an API request."""
    body: dict[str, Any] = {name: form[name] for name in PLAIN if name in form}
    if "addresses" in form:
        body["addresses"] = split_lines(form["addresses"])
    names = ("template",) if "template" in form else ("text", "subject")
    body |= {name: form[name] for name in names if name in form}
    if "variables" in form and "template" in form:
        body["variables"] = parse_pairs(form["variables"], "variables")
    body["trigger"] = form.get("trigger", "MANUAL")
    if body["trigger"] == "SCHEDULED" and "at" in form:
        body["at"] = form["at"]
    body |= {name: True for name in FLAGS if form.get(name) == "yes"}
    given = {"per_second": number(form, "per_second"), "error_limit": number(form, "error_limit")}
    given["canary"] = integer(form, "canary")
    return body | {name: value for name, value in given.items() if value is not None}
