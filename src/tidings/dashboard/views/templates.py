"""Templates, and the page of one with its versions, a preview, and the form for the next version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...model.errors import NotFound, TidingsError
from ..forms import Form, format_declarations, parse_declarations, query_values
from ..renderer import Views, get, post
from ..responses import json_response, redirect, unknown_action

PAGE = 50
VERSIONS = 20


class TemplateViews(Views):
    @get("/templates")
    async def page(self, request: Request) -> Response:
        """List templates by name; retired ones on a separate page."""
        asked = query_values(request, "retired", "after")
        retired = asked.get("retired") == "yes"
        found = await self._outbound.templates.page(retired=retired, limit=PAGE, after=asked.get("after"))
        return self._renderer.listing("templates.html", found, asked, retired=retired)

    @get("/templates/new")
    async def blank(self, _: Request) -> Response:
        return await self._form({})

    @post("/templates", OPERATE)
    async def create(self, request: Request, form: Form) -> Response:
        """Create a template; an error is shown next to its field."""
        try:
            body = {"name": form.get("name", ""), **_content(form)}
            made = await self._outbound.templates.create(body, key=form.get("key"))
        except TidingsError as error:
            return await self._form(form, error)
        return redirect(f"/templates/{made.answer['name']}")

    @post("/templates/preview", READ)
    async def preview(self, request: Request, form: Form) -> Response:
        """Return a preview, while the form is being filled in."""
        return json_response({"preview": await self._preview(form)})

    @get("/templates/{name}")
    async def show(
        self, request: Request, name: str, form: Form | None = None, error: TidingsError | None = None
    ) -> Response:
        """Show one version of a template, with a preview for a contact."""
        query = request.query_params
        version = query.get("version", "")
        template = await self._outbound.templates.show(name, version=int(version) if version.isdigit() else None)
        versions = await self._outbound.templates.versions(name, limit=VERSIONS)
        sample = query_values(request, "channel", "to")
        return self._renderer.form(
            "template.html",
            _form_values(template) if form is None else form,
            error,
            template=template,
            versions=versions.items,
            newest=versions.items[0]["version"],
            sample=sample,
            key=self._outbound.clock.new_id(),
            preview=await self._preview(sample, _content_of(template)),
        )

    @post("/templates/{name}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, name: str, action: str) -> Response:
        """Save the next version, retire the template, or restore it."""
        templates = self._outbound.templates
        try:
            match action:
                case "revise":
                    data = (await templates.show(name))["data"]  # kept: the form has no field for it
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
            return await self.show(request, name, form, error)
        return redirect(f"/templates/{name}")

    async def _form(self, form: Form, error: TidingsError | None = None) -> Response:
        preview = await self._preview(form) if form else ""
        return self._renderer.form("template_new.html", form, error, preview=preview)

    async def _preview(self, form: Form, template: Mapping[str, Any] | None = None) -> str:
        """Render a template, by default the form's, for a sample contact; or render the error."""
        try:
            body: dict[str, Any] = {"template": _content(form) if template is None else template}
            if "to" in form:
                body |= {name: form[name] for name in ("channel", "to") if name in form}
            rendered = await self._outbound.templates.trial(body)
        except TidingsError as error:
            return self._renderer.piece("template_preview.html", error=error)
        return self._renderer.piece("template_preview.html", rendered=rendered, error=None)


def _content(form: Form) -> dict[str, Any]:
    """Return a version as in the body of an API request."""
    content: dict[str, Any] = {name: form[name] for name in ("text", "subject") if name in form}
    return content | {"variables": parse_declarations(form.get("variables", ""))}


def _content_of(template: Mapping[str, Any]) -> dict[str, Any]:
    return {name: template[name] for name in ("text", "subject", "data", "variables") if template[name] is not None}


def _form_values(template: Mapping[str, Any]) -> dict[str, str]:
    """Return a version as form values."""
    return {
        "text": template["text"] or "",
        "subject": template["subject"] or "",
        "variables": format_declarations(template["variables"]),
    }
