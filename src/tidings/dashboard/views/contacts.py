"""Contacts, and the page of one with its details, suppressions and recent messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...model.errors import NotFound, TidingsError
from ...outbound.contacts.contact_filters import ContactFilter, read_filter
from ...outbound.service import OutboundService
from ..forms import format_pairs, parse_pairs, query_values, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import redirect, unknown_action

PAGE = 50
LATEST = 5  # messages to each address of a contact
ADDRESS = "addresses."


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the contact routes."""
    views = _ContactViews(app.outbound, renderer)
    return [
        ViewRoute("GET", "/contacts", views.page),
        ViewRoute("GET", "/contacts/new", views.blank),
        ViewRoute("POST", "/contacts", views.create, OPERATE),
        ViewRoute("GET", "/contacts/{id}", views.show),
        ViewRoute("POST", "/contacts/{id}/{action}", views.act, OPERATE),
    ]


class _ContactViews(Views[OutboundService]):
    async def page(self, request: Request) -> Response:
        """List contacts, newest first, by their fields or by address."""
        asked = query_values(request, "tags", "channel", "language", "address", "after")
        if address := asked.get("address"):
            items, following = await self._at(address, asked.get("channel")), None
        else:
            found = await self._service.contacts.page(self._filter(asked), limit=PAGE, after=asked.get("after"))
            items, following = found.items, found.next
        more = urlencode(asked | {"after": following}) if following else None
        rest = urlencode({name: value for name, value in asked.items() if name != "after"})
        return self._renderer.page("contacts.html", items=items, chosen=asked, more=more, rest=rest)

    async def blank(self, _: Request) -> Response:
        """Show the form for a new contact."""
        return self._renderer.form("contact_new.html", {}, None)

    async def create(self, request: Request) -> Response:
        """Create a contact; an error is shown next to its field."""
        form = await read_form(request)
        try:
            made = await self._service.contacts.create(_body(form, {}), key=form.get("key"))
        except TidingsError as error:
            return self._renderer.form("contact_new.html", form, error)
        return redirect(f"/contacts/{made.answer['id']}")

    async def act(self, request: Request) -> Response:
        """Perform an action on one contact."""
        id_, action, form = request.path_params["id"], request.path_params["action"], await read_form(request)
        contacts, suppressions = self._service.contacts, self._service.suppressions
        before = await contacts.show(id_)
        try:
            match action:
                case "edit":
                    await contacts.edit(id_, _body(form, before, empties=True))
                case "opt-out":
                    await suppressions.create({name: form.get(name, "") for name in ("address", "channel", "reason")})
                case "opt-in":
                    await suppressions.remove(form.get("address", ""), form.get("channel"))
                case "remove":
                    await contacts.remove(id_)
                    return redirect("/contacts")
                case _:
                    raise unknown_action(action)
        except NotFound:
            raise
        except TidingsError as error:
            return await self.show(request, form if action == "edit" else None, error)
        return redirect(f"/contacts/{id_}", done="1")

    async def show(
        self, request: Request, form: Mapping[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """Show one contact: details, suppressions and recent messages."""
        contact = await self._service.contacts.show(request.path_params["id"])
        suppressions: list[dict[str, Any]] = []
        sent: list[dict[str, Any]] = []
        for address in dict.fromkeys(contact["addresses"].values()):
            suppressions += (await self._service.suppressions.page(address=address)).items
            sent += (await self._service.messages.page(to=address, limit=LATEST)).items
        return self._renderer.form(
            "contact.html",
            _form_values(contact) if form is None else form,
            error,
            contact=contact,
            suppressions=suppressions,
            sent=sent,
            done="done" in request.query_params,
        )

    def _filter(self, asked: Mapping[str, Any]) -> ContactFilter | None:
        given = {name: asked[name] for name in ("channel", "language") if name in asked}
        if "tags" in asked:
            given["tags_all"] = split_words(asked["tags"])
        return read_filter(given, self._service.contacts.channels) if given else None

    async def _at(self, address: str, channel: str | None) -> list[dict[str, Any]]:
        """Return the contacts with this address, on one channel or on any."""
        channels = [channel] if channel else self._service.contacts.channels
        found = [await self._service.contacts.at(name, address) for name in channels]
        return list({contact["id"]: contact for contact in found if contact is not None}.values())


def _body(form: Mapping[str, str], before: Mapping[str, Any], *, empties: bool = False) -> dict[str, Any]:
    """Return the form as the body of an API request; with `empties`, empty fields clear their values."""
    addresses = {name.removeprefix(ADDRESS): form[name] for name in form if name.startswith(ADDRESS)}
    attributes = parse_pairs(form.get("attributes", ""), "attributes")
    body: dict[str, Any] = {
        **{name: form.get(name, "") for name in ("name", "timezone", "language") if empties or name in form},
        "tags": split_words(form.get("tags", "")),
        "addresses": addresses,
        "attributes": _with_types(attributes, before.get("attributes", {})),
    }
    if empties:
        body["addresses"] = dict.fromkeys(before["addresses"], "") | addresses
        body["attributes"] = dict.fromkeys(before["attributes"], "") | body["attributes"]
    return body


def _with_types(typed: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the type of values that were not changed, so that a number stays a number."""
    kept = {
        name: value for name, value in before.items() if format_pairs({name: value}) == f"{name} = {typed.get(name)}"
    }
    return {**typed, **kept}


def _form_values(contact: Mapping[str, Any]) -> dict[str, str]:
    """Return a contact as form values."""
    return {
        "name": contact["name"],
        "timezone": contact["timezone"] or "",
        "language": contact["language"] or "",
        "tags": ", ".join(contact["tags"]),
        "attributes": format_pairs(contact["attributes"]),
        **{f"{ADDRESS}{channel}": address for channel, address in contact["addresses"].items()},
    }
