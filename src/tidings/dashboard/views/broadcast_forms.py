"""The form for a new broadcast, with a preview of its recipients and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import READ, SEND
from ...app import App
from ...model.errors import TidingsError
from ...outbound.service import OutboundService
from ..forms import integer, number, parse_pairs, query_values, read_form, split_lines
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import json_response, redirect

PLAIN = ("channel", "name", "xref", "timezone", "list")
FLAGS = ("recipient_timezone", "skip_bad")


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the broadcast form routes; they must come before those of one broadcast."""
    views = _BroadcastForms(app.outbound, renderer)
    return [
        ViewRoute("GET", "/broadcasts/new", views.blank),
        ViewRoute("POST", "/broadcasts/preview", views.preview, READ),
        ViewRoute("POST", "/broadcasts", views.create, SEND),
    ]


class _BroadcastForms(Views[OutboundService]):
    async def blank(self, request: Request) -> Response:
        """Show the form; the query may preselect a list, a template or a channel."""
        default = "phone" if "phone" in self._service.contacts.channels else self._service.contacts.channels[:1]
        preset = query_values(request, "list", "template", "channel")
        return await self._page({"trigger": "MANUAL", "channel": "".join(default), **preset})

    async def preview(self, request: Request) -> Response:
        """Return the number of recipients and the first messages, while the form is being filled in."""
        return json_response({"preview": await self._preview(await read_form(request))})

    async def create(self, request: Request) -> Response:
        """Create the broadcast, or only preview it; an error is shown next to its field."""
        form = await read_form(request)
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._service.broadcast_creator.create(_body(form), key=form.get("key"))
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/broadcasts/{made.answer['id']}")

    async def _preview(self, form: Mapping[str, str]) -> str:
        try:
            found = await self._service.broadcast_creator.foresee(_body(form))
        except TidingsError as error:
            return self._renderer.piece("broadcast_preview.html", error=error)
        return self._renderer.piece("broadcast_preview.html", found=found, error=None)

    async def _page(self, form: Mapping[str, str], error: TidingsError | None = None) -> Response:
        templates = await self._service.templates.page(limit=200)
        has_recipients = any(name in form for name in ("list", "addresses"))
        return self._renderer.form(
            "broadcast_form.html",
            form,
            error,
            lists=await self._service.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=await self._preview(form) if has_recipients and error is None else "",
        )


def _body(form: Mapping[str, str]) -> dict[str, Any]:
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
