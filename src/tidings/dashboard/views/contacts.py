"""Contacts: lists of them, and the page of one, with its card to change and its opt-outs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...model.errors import NotFound, TidingsError
from ...outbound.contacts.contact_filters import ContactFilter, read_filter
from ...outbound.service import OutboundService
from ..forms import format_pairs, parse_pairs, query_values, read_form, split_words
from ..renderer import PageRenderer, ViewRoute, Views, redirect, unknown_action

PAGE = 50
LATEST = 5  # messages to each address of a contact
ADDRESS = "addresses."


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _ContactViews(desk, frame)
    return [
        ViewRoute("GET", "/contacts", views.page),
        ViewRoute("GET", "/contacts/new", views.blank),
        ViewRoute("POST", "/contacts", views.create, OPERATE),
        ViewRoute("GET", "/contacts/{id}", views.show),
        ViewRoute("POST", "/contacts/{id}/{action}", views.act, OPERATE),
    ]


class _ContactViews(Views):
    async def page(self, request: Request) -> Response:
        """Contacts, newest first, by what is on their cards; or who has one address."""
        asked = query_values(request, "tags", "channel", "language", "address", "after")
        if address := asked.get("address"):
            items, following = await self._at(address, asked.get("channel")), None
        else:
            found = await self._desk.contacts.page(self._filter(asked), limit=PAGE, after=asked.get("after"))
            items, following = found.items, found.next
        more = urlencode(asked | {"after": following}) if following else None
        rest = urlencode({name: value for name, value in asked.items() if name != "after"})
        return self._frame.page("contacts.html", items=items, chosen=asked, more=more, rest=rest)

    async def blank(self, _: Request) -> Response:
        """The form for a new one."""
        return self._form({})

    async def create(self, request: Request) -> Response:
        """Keep what the form says; a mistake is told beside its field."""
        form = await read_form(request)
        try:
            made = await self._desk.contacts.create(_card(form, {}), key=form.get("key"))
        except TidingsError as error:
            return self._form(form, error)
        return redirect(f"/contacts/{made.answer['id']}")

    async def act(self, request: Request) -> Response:
        """What a person asks of one contact."""
        id_, action, form = request.path_params["id"], request.path_params["action"], await read_form(request)
        contacts, opt_outs = self._desk.contacts, self._desk.suppressions
        before = await contacts.show(id_)
        try:
            match action:
                case "edit":
                    await contacts.edit(id_, _card(form, before, empties=True))
                case "opt-out":
                    await opt_outs.create(
                        {name: form.get(name, "") for name in ("address", "channel", "reason")}
                    )
                case "opt-in":
                    await opt_outs.remove(form.get("address", ""), form.get("channel"))
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
        """One contact: its card, where it has opted out, and what was sent to it lately."""
        contact = await self._desk.contacts.show(request.path_params["id"])
        opt_outs: list[dict[str, Any]] = []
        sent: list[dict[str, Any]] = []
        for address in dict.fromkeys(contact["addresses"].values()):
            opt_outs += (await self._desk.suppressions.page(address=address)).items
            sent += (await self._desk.messages.page(to=address, limit=LATEST)).items
        return self._frame.form(
            "contact.html",
            _typed(contact) if form is None else form,
            error,
            contact=contact,
            opt_outs=opt_outs,
            sent=sent,
            done="done" in request.query_params,
        )

    def _form(self, form: Mapping[str, str], error: TidingsError | None = None) -> Response:
        return self._frame.form("contact_new.html", form, error)

    def _filter(self, asked: Mapping[str, Any]) -> ContactFilter | None:
        given = {name: asked[name] for name in ("channel", "language") if name in asked}
        if "tags" in asked:
            given["tags_all"] = split_words(asked["tags"])
        return read_filter(given, self._desk.contacts.channels) if given else None

    async def _at(self, address: str, channel: str | None) -> list[dict[str, Any]]:
        """Who has this address, on one channel or on any."""
        channels = [channel] if channel else self._desk.contacts.channels
        found = [await self._desk.contacts.at(name, address) for name in channels]
        return list({contact["id"]: contact for contact in found if contact is not None}.values())


def _card(form: Mapping[str, str], before: Mapping[str, Any], *, empties: bool = False) -> dict[str, Any]:
    """A contact as a caller of the API would write it; `empties` takes away what was emptied."""
    addresses = {name.removeprefix(ADDRESS): form[name] for name in form if name.startswith(ADDRESS)}
    attributes = parse_pairs(form.get("attributes", ""), "attributes")
    card: dict[str, Any] = {
        **{name: form.get(name, "") for name in ("name", "timezone", "language") if empties or name in form},
        "tags": split_words(form.get("tags", "")),
        "addresses": addresses,
        "attributes": _as_before(attributes, before.get("attributes", {})),
    }
    if empties:
        card["addresses"] = dict.fromkeys(before["addresses"], "") | addresses
        card["attributes"] = dict.fromkeys(before["attributes"], "") | card["attributes"]
    return card


def _as_before(typed: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """A number that was left as it is stays a number."""
    shown = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in format_pairs(before).splitlines()}
    return {name: before[name] if shown.get(name) == value else value for name, value in typed.items()}


def _typed(contact: Mapping[str, Any]) -> dict[str, str]:
    """A contact as its form shows it."""
    return {
        "name": contact["name"],
        "timezone": contact["timezone"] or "",
        "language": contact["language"] or "",
        "tags": ", ".join(contact["tags"]),
        "attributes": format_pairs(contact["attributes"]),
        **{f"{ADDRESS}{channel}": address for channel, address in contact["addresses"].items()},
    }
