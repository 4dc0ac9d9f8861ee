"""Contacts, contact lists with saved filters, and the suppression list, each with its pages and forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...inputs.pagination import Page
from ...model.errors import NotFound, TidingsError
from ...outbound.contacts.contact_filters import ContactFilter, read_filter
from ..forms import Form, format_pairs, parse_pairs, query_values, split_words
from ..renderer import Views, get, post
from ..responses import next_page_query, redirect, unknown_action

PAGE = 50
LATEST = 5  # messages to each address of a contact
ADDRESS = "addresses."


class ContactViews(Views):
    """Contacts, and the page of one with its details, suppressions and recent messages."""

    @get("/contacts")
    async def page(self, request: Request) -> Response:
        """List contacts, newest first, by their fields or by address."""
        asked = query_values(request, "tags", "channel", "language", "address", "after")
        if address := asked.get("address"):
            found = Page(await self._at(address, asked.get("channel")), None)
        else:
            found = await self._outbound.contacts.page(self._filter(asked), limit=PAGE, after=asked.get("after"))
        rest = urlencode({name: value for name, value in asked.items() if name != "after"})
        return self._renderer.listing("contacts.html", found, asked, rest=rest)

    @get("/contacts/new")
    async def blank(self, _: Request) -> Response:
        return self._renderer.form("contact_new.html", {}, None)

    @post("/contacts", OPERATE)
    async def create(self, request: Request, form: Form) -> Response:
        """Create a contact; an error is shown next to its field."""
        try:
            made = await self._outbound.contacts.create(_body(form, {}), key=form.get("key"))
        except TidingsError as error:
            return self._renderer.form("contact_new.html", form, error)
        return redirect(f"/contacts/{made.answer['id']}")

    @post("/contacts/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        contacts, suppressions = self._outbound.contacts, self._outbound.suppressions
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
            return await self.show(request, id_, form if action == "edit" else None, error)
        return redirect(f"/contacts/{id_}", done="1")

    @get("/contacts/{id}")
    async def show(
        self, request: Request, id_: str, form: Form | None = None, error: TidingsError | None = None
    ) -> Response:
        """Show one contact: details, suppressions and recent messages."""
        contact = await self._outbound.contacts.show(id_)
        suppressions: list[dict[str, Any]] = []
        sent: list[dict[str, Any]] = []
        for address in dict.fromkeys(contact["addresses"].values()):
            suppressions += (await self._outbound.suppressions.page(address=address)).items
            sent += (await self._outbound.messages.page(to=address, limit=LATEST)).items
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
        return read_filter(given, self._outbound.contacts.channels) if given else None

    async def _at(self, address: str, channel: str | None) -> list[dict[str, Any]]:
        """Return the contacts with this address, on one channel or on any."""
        channels = [channel] if channel else self._outbound.contacts.channels
        found = [await self._outbound.contacts.at(name, address) for name in channels]
        return list({contact["id"]: contact for contact in found if contact is not None}.values())


def _body(form: Form, before: Mapping[str, Any], *, empties: bool = False) -> dict[str, Any]:
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


class ContactListViews(Views):
    """Contact lists and saved filters, and the page of one with its members."""

    @get("/lists")
    async def page(self, request: Request, form: Form | None = None, error: TidingsError | None = None) -> Response:
        """List all lists by name, with the form for a new one."""
        found = await self._outbound.audience.page(limit=PAGE, after=request.query_params.get("after") or None)
        return self._renderer.form("lists.html", form, error, items=found.items, more=next_page_query(found))

    @post("/lists", OPERATE)
    async def create(self, request: Request, form: Form) -> Response:
        """Create a list, or a saved filter if filter fields are filled in."""
        filter_ = _filter(form)
        body = {"name": form.get("name", ""), **({"filter": filter_} if filter_ else {})}
        try:
            made = await self._outbound.audience.create(body, key=form.get("key"))
        except TidingsError as error:
            return await self.page(request, form, error)
        return redirect(f"/lists/{made.answer['id']}")

    @get("/lists/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one list with its members."""
        query = request.query_params
        list_ = await self._outbound.audience.show(id_)
        found = await self._outbound.audience.members(list_["id"], limit=PAGE, after=query.get("after") or None)
        return self._renderer.page(
            "list.html", list=list_, members=found.items, more=next_page_query(found), problem=query.get("problem")
        )

    @post("/lists/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        audience = self._outbound.audience
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

    async def _contact(self, form: Form) -> str:
        """Return the id of the contact with the entered address."""
        channel, address = form.get("channel", ""), form.get("address", "")
        found = await self._outbound.contacts.at(channel, address) if address else None
        if found is None:
            raise NotFound(
                f"no contact has the address {address[:60]!r} on {channel[:60]}",
                field="address",
                remedy="create the contact first",
            )
        return str(found["id"])


def _filter(form: Form) -> dict[str, Any]:
    """Return the filter fields that are filled in."""
    tags = {name: split_words(form[name]) for name in ("tags_all", "tags_none") if name in form}
    return tags | {name: form[name] for name in ("channel", "language", "timezone") if name in form}


class SuppressionViews(Views):
    """The suppression list: addresses that receive no messages, with forms to add and remove them."""

    @get("/suppressions")
    async def page(self, request: Request, form: Form | None = None, error: TidingsError | None = None) -> Response:
        """List suppressions by address."""
        asked = query_values(request, "address", "after")
        found = await self._outbound.suppressions.page(limit=PAGE, **asked)
        more = next_page_query(found, asked)
        return self._renderer.form("suppressions.html", form, error, items=found.items, chosen=asked, more=more)

    @post("/suppressions/{action}", OPERATE)
    async def act(self, request: Request, form: Form, action: str) -> Response:
        """Add or remove a suppression."""
        try:
            match action:
                case "add":
                    named = {name: form.get(name, "") for name in ("address", "channel", "reason")}
                    await self._outbound.suppressions.create(named)
                case "remove":
                    await self._outbound.suppressions.remove(form.get("address", ""), form.get("channel"))
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            return await self.page(request, form, error)
        return redirect("/suppressions")
