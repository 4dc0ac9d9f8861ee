"""Broadcasts from the page: a form with a preview of who would get what before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import READ, SEND
from ...model.errors import TidingsError
from ...outbound.service import OutboundService
from ..forms import integer, number, parse_pairs, query_values, read_form, split_lines
from ..renderer import PageRenderer, ViewRoute, Views, json_response, redirect

PLAIN = ("channel", "name", "xref", "timezone")
FLAGS = ("recipient_timezone", "skip_bad")


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes; they stand before those of one broadcast."""
    views = _BroadcastForms(desk, frame)
    return [
        ViewRoute("GET", "/broadcasts/new", views.blank),
        ViewRoute("POST", "/broadcasts/preview", views.preview, READ),
        ViewRoute("POST", "/broadcasts", views.create, SEND),
    ]


class _BroadcastForms(Views):
    async def blank(self, request: Request) -> Response:
        """The form; the address may name a list or a template already."""
        usual = "phone" if "phone" in self._desk.contacts.channels else self._desk.contacts.channels[:1]
        named = query_values(request, "list", "template", "channel")
        return await self._page({"trigger": "MANUAL", "channel": "".join(usual), **named})

    async def preview(self, request: Request) -> Response:
        """How many would get it and what the first would read, while the form is being filled in."""
        return json_response({"preview": await self._foreseen(await read_form(request))})

    async def create(self, request: Request) -> Response:
        """Make it, or only show what would come of it; a mistake is told beside its field."""
        form = await read_form(request)
        if form.get("do") == "preview":
            return await self._page(form)
        try:
            made = await self._desk.broadcast_creator.create(_plan(form), key=form.get("key"))
        except TidingsError as error:
            return await self._page(form, error)
        return redirect(f"/broadcasts/{made.answer['id']}")

    async def _foreseen(self, form: Mapping[str, str]) -> str:
        try:
            found = await self._desk.broadcast_creator.foresee(_plan(form))
        except TidingsError as error:
            return self._frame.piece("foreseen.html", error=error)
        return self._frame.piece("foreseen.html", found=found, error=None)

    async def _page(self, form: Mapping[str, str], error: TidingsError | None = None) -> Response:
        templates = await self._desk.templates.page(limit=200)
        has_more = any(name in form for name in ("list", "addresses"))
        return self._frame.form(
            "broadcast_form.html",
            form,
            error,
            lists=await self._desk.audience.names(),
            templates=[found["name"] for found in templates.items],
            preview=await self._foreseen(form) if has_more and error is None else "",
        )


def _plan(form: Mapping[str, str]) -> dict[str, Any]:
    """A broadcast as a caller of the API would write it."""
    plan: dict[str, Any] = {name: form[name] for name in PLAIN if name in form}
    if "list" in form:
        plan["list"] = form["list"]
    if "addresses" in form:
        plan["addresses"] = split_lines(form["addresses"])
    names = ("template",) if "template" in form else ("text", "subject")
    plan |= {name: form[name] for name in names if name in form}
    if "variables" in form and "template" in form:
        plan["variables"] = parse_pairs(form["variables"], "variables")
    plan["trigger"] = form.get("trigger", "MANUAL")
    if plan["trigger"] == "SCHEDULED" and "at" in form:
        plan["at"] = form["at"]
    plan |= {name: True for name in FLAGS if form.get(name) == "yes"}
    given = {"per_second": number(form, "per_second"), "error_limit": number(form, "error_limit")}
    given["canary"] = integer(form, "canary")
    return plan | {name: value for name, value in given.items() if value is not None}
