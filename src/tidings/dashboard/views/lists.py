"""Contact lists and saved filters, and the page of one with its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...model.errors import NotFound, TidingsError
from ...outbound.service import OutboundService
from ..forms import read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import next_page_query, redirect, unknown_action

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the list routes."""
    views = _ListViews(app.outbound, renderer)
    return [
        ViewRoute("GET", "/lists", views.page),
        ViewRoute("POST", "/lists", views.create, OPERATE),
        ViewRoute("GET", "/lists/{id}", views.show),
        ViewRoute("POST", "/lists/{id}/{action}", views.act, OPERATE),
    ]


class _ListViews(Views[OutboundService]):
    async def page(
        self, request: Request, form: Mapping[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """List all lists by name, with the form for a new one."""
        found = await self._service.audience.page(limit=PAGE, after=request.query_params.get("after") or None)
        return self._renderer.form("lists.html", form, error, items=found.items, more=next_page_query(found))

    async def create(self, request: Request) -> Response:
        """Create a list, or a saved filter if filter fields are filled in."""
        form = await read_form(request)
        filter_ = _filter(form)
        body = {"name": form.get("name", ""), **({"filter": filter_} if filter_ else {})}
        try:
            made = await self._service.audience.create(body, key=form.get("key"))
        except TidingsError as error:
            return await self.page(request, form, error)
        return redirect(f"/lists/{made.answer['id']}")

    async def show(self, request: Request) -> Response:
        """Show one list with its members."""
        query = request.query_params
        list_ = await self._service.audience.show(request.path_params["id"])
        found = await self._service.audience.members(list_["id"], limit=PAGE, after=query.get("after") or None)
        return self._renderer.page(
            "list.html", list=list_, members=found.items, more=next_page_query(found), problem=query.get("problem")
        )

    async def act(self, request: Request) -> Response:
        """Perform an action on one list."""
        id_, action, form = request.path_params["id"], request.path_params["action"], await read_form(request)
        audience = self._service.audience
        target: dict[str, str] = {}
        try:
            match action:
                case "add":
                    await audience.add(id_, [await self._contact(form)])
                case "drop":
                    await audience.drop(id_, [form.get("contact", "")])
                case "rename":
                    await audience.edit(id_, {"name": form.get("name", "")})
                case "remove":
                    await audience.remove(id_)
                    return redirect("/lists")
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            await audience.find(id_)  # raises NotFound: a missing list has no page to show the error on
            target = {"problem": str(error)}
        return redirect(f"/lists/{id_}", **target)

    async def _contact(self, form: Mapping[str, str]) -> str:
        """Return the id of the contact with the entered address."""
        channel, address = form.get("channel", ""), form.get("address", "")
        found = await self._service.contacts.at(channel, address) if address else None
        if found is None:
            raise NotFound(
                f"no contact has the address {address[:60]!r} on {channel[:60]}",
                field="address",
                remedy="create the contact first",
            )
        return str(found["id"])


def _filter(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the filter fields that are filled in."""
    tags = {name: split_words(form[name]) for name in ("tags_all", "tags_none") if name in form}
    return tags | {name: form[name] for name in ("channel", "language", "timezone") if name in form}
