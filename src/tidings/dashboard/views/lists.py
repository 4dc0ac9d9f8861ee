"""Lists: those with members and saved filters, and the page of one with who is on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...model.errors import NotFound, TidingsError
from ...outbound.desk import Desk
from ..forms import read_form, words
from ..frame import Frame, Views, Way, back, more, no_such

PAGE = 50


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""
    views = _Lists(desk, frame)
    return [
        Way("GET", "/lists", views.page),
        Way("POST", "/lists", views.create, OPERATE),
        Way("GET", "/lists/{id}", views.show),
        Way("POST", "/lists/{id}/{action}", views.act, OPERATE),
    ]


class _Lists(Views):
    async def page(
        self, request: Request, form: Mapping[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """Lists, by name, and the form for a new one."""
        found = await self._desk.audience.page(limit=PAGE, after=request.query_params.get("after") or None)
        return self._frame.form("lists.html", form, error, items=found.items, more=more(found))

    async def create(self, request: Request) -> Response:
        """A new list, or a saved filter where the form says whom it finds."""
        form = await read_form(request)
        filter_ = _filter(form)
        body = {"name": form.get("name", ""), **({"filter": filter_} if filter_ else {})}
        try:
            made = await self._desk.audience.create(body, key=form.get("key"))
        except TidingsError as error:
            return await self.page(request, form, error)
        return back(f"/lists/{made.answer['id']}")

    async def show(self, request: Request) -> Response:
        """One list with its members."""
        query = request.query_params
        list_ = await self._desk.audience.show(request.path_params["id"])
        found = await self._desk.audience.members(list_["id"], limit=PAGE, after=query.get("after") or None)
        return self._frame.page(
            "list.html",
            list=list_,
            members=found.items,
            more=more(found),
            problem=query.get("problem"),
        )

    async def act(self, request: Request) -> Response:
        """What a person asks of one list."""
        id_, action, form = request.path_params["id"], request.path_params["action"], await read_form(request)
        audience = self._desk.audience
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
                    return back("/lists")
                case _:
                    raise no_such(action)
        except TidingsError as error:
            await audience.find(id_)  # one that does not exist has no page to say it on
            target = {"problem": str(error)}
        return back(f"/lists/{id_}", **target)

    async def _contact(self, form: Mapping[str, str]) -> str:
        """The contact that has the address that was typed."""
        channel, address = form.get("channel", ""), form.get("address", "")
        found = await self._desk.contacts.at(channel, address) if address else None
        if found is None:
            raise NotFound(
                f"no contact has the address {address[:60]!r} on {channel[:60]}",
                field="address",
                remedy="make the contact first",
            )
        return str(found["id"])


def _filter(form: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a filter that were filled in."""
    tags = {name: words(form[name]) for name in ("tags_all", "tags_none") if name in form}
    return tags | {name: form[name] for name in ("channel", "language", "zone") if name in form}
