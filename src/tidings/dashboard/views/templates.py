"""Templates: all of them, and the page of one: what it says to somebody, its versions, the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...model.errors import NotFound, TidingsError
from ...outbound.service import OutboundService
from ..forms import format_declarations, parse_declarations, parse_pairs, query_values, read_form
from ..renderer import (
    PageRenderer,
    ViewRoute,
    Views,
    json_response,
    next_page_query,
    redirect,
    unknown_action,
)

PAGE = 50
VERSIONS = 20


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _TemplateViews(desk, frame)
    return [
        ViewRoute("GET", "/templates", views.page),
        ViewRoute("GET", "/templates/new", views.blank),
        ViewRoute("POST", "/templates", views.create, OPERATE),
        ViewRoute("POST", "/templates/preview", views.preview, READ),
        ViewRoute("GET", "/templates/{name}", views.show),
        ViewRoute("POST", "/templates/{name}/{action}", views.act, OPERATE),
    ]


class _TemplateViews(Views):
    async def page(self, request: Request) -> Response:
        """Templates by name; those out of use on a page of their own."""
        asked = query_values(request, "retired", "after")
        retired = asked.get("retired") == "yes"
        found = await self._desk.templates.page(retired=retired, limit=PAGE, after=asked.get("after"))
        return self._frame.page(
            "templates.html", items=found.items, retired=retired, more=next_page_query(found, asked)
        )

    async def blank(self, _: Request) -> Response:
        """The form for a new one."""
        return await self._form({})

    async def create(self, request: Request) -> Response:
        """Save the first version; a mistake is told beside its field."""
        form = await read_form(request)
        try:
            body = {"name": form.get("name", ""), **_content(form)}
            made = await self._desk.templates.create(body, key=form.get("key"))
        except TidingsError as error:
            return await self._form(form, error)
        return redirect(f"/templates/{made.answer['name']}")

    async def preview(self, request: Request) -> Response:
        """What the form would say, while it is being typed."""
        form = await read_form(request)
        return json_response({"preview": await self._tried(form, self._trial(form))})

    async def show(
        self, request: Request, form: Mapping[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """One template as one of its versions, with a preview to somebody."""
        name, query = request.path_params["name"], request.query_params
        version = query.get("version", "")
        template = await self._desk.templates.show(name, version=int(version) if version.isdigit() else None)
        versions = await self._desk.templates.versions(name, limit=VERSIONS)
        sample = query_values(request, "channel", "to")
        return self._frame.form(
            "template.html",
            _typed(template) if form is None else form,
            error,
            template=template,
            versions=versions.items,
            newest=versions.items[0]["version"],
            sample=sample,
            key=self._desk.clock.new_id(),
            preview=await self._tried(sample, {"template": _said(template)}),
        )

    async def act(self, request: Request) -> Response:
        """Save the next version, put it out of use, or back."""
        name, action = request.path_params["name"], request.path_params["action"]
        form = await read_form(request)
        templates = self._desk.templates
        try:
            match action:
                case "revise":
                    data = (await templates.show(name))["data"]  # the form has no field for it: it stays
                    body = _content(form) | ({} if data is None else {"data": data})
                    await templates.revise(name, body, key=form.get("key"))
                case "retire":
                    await templates.retire(name)
                case "restore":
                    await templates.restore(name)
                case _:
                    raise unknown_action(action)
        except NotFound:
            raise
        except TidingsError as error:
            return await self.show(request, form, error)
        return redirect(f"/templates/{name}")

    async def _form(self, form: Mapping[str, str], error: TidingsError | None = None) -> Response:
        preview = await self._tried(form, self._trial(form)) if form else ""
        return self._frame.form("template_new.html", form, error, preview=preview)

    def _trial(self, form: Mapping[str, str]) -> dict[str, Any] | TidingsError:
        try:
            return {"template": _content(form), "variables": parse_pairs(form.get("values", ""), "values")}
        except TidingsError as error:
            return error

    async def _tried(self, form: Mapping[str, str], body: dict[str, Any] | TidingsError) -> str:
        """What a template says to a sample contact, or why it cannot."""
        try:
            if isinstance(body, TidingsError):
                raise body
            to = {name: form[name] for name in ("channel", "to") if name in form} if "to" in form else {}
            said = await self._desk.templates.trial(body | to)
        except TidingsError as error:
            return self._frame.piece("preview.html", error=error)
        return self._frame.piece("preview.html", said=said, error=None)


def _content(form: Mapping[str, str]) -> dict[str, Any]:
    """What a version says, as a caller of the API would write it."""
    content: dict[str, Any] = {name: form[name] for name in ("text", "subject") if name in form}
    return content | {"variables": parse_declarations(form.get("variables", ""))}


def _said(template: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: template[name]
        for name in ("text", "subject", "data", "variables")
        if template[name] is not None
    }


def _typed(template: Mapping[str, Any]) -> dict[str, str]:
    """A version as the form shows it."""
    return {
        "text": template["text"] or "",
        "subject": template["subject"] or "",
        "variables": format_declarations(template["variables"]),
    }
