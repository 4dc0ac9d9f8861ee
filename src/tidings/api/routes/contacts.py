"""Contacts, and their import from CSV or NDJSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE, READ, requires
from ...model.errors import Invalid
from ...outbound.contacts.bulk_import import ContactColumns, import_contacts, parse_column_names
from ...outbound.contacts.contact_fields import CONTACT_FIELDS
from ...outbound.contacts.contact_filters import ContactFilter, read_filter
from ...outbound.contacts.uploads import NumberedRow, RewindableStream, read_rows, upload_format
from ...outbound.service import OutboundService
from ..bodies import created_response, json_response, page_response, read_fields, read_json
from ..body_limits import reject_oversized_upload
from ..ndjson_streams import NDJSON, UPLOAD, import_response
from ..openapi_responses import (
    CONFLICT,
    CREATED,
    ERROR_RESPONSES,
    NOT_FOUND,
    action_options,
    body_schema,
    content_options,
    create_options,
)
from ..query_parameters import STRICT_QUERY, After

IMPORT = "/v1/contacts:import"
COUNTS = ("created", "changed", "unchanged", "refused")


def routes(outbound: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Return the routes under /v1/contacts; `largest` limits a row in bytes, `most` the rows of an import."""
    router = APIRouter(tags=["contacts"], responses=ERROR_RESPONSES)

    @router.post("/v1/contacts", **create_options(CONTACT_FIELDS))
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """Create a contact. An address that belongs to another contact is rejected with its id."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.contacts.create(body, key=key)
        return created_response(made, f"/v1/contacts/{made.answer['id']}")

    @router.put("/v1/contacts", openapi_extra=body_schema(CONTACT_FIELDS), responses=CONFLICT | CREATED)
    @requires(OPERATE)
    async def put(request: Request) -> Response:
        """Create a contact (201), or update the one that has one of the addresses (200)."""
        contact, is_new = await outbound.contacts.put(await read_json(request))
        return json_response(contact, 201 if is_new else 200, {"location": f"/v1/contacts/{contact['id']}"})

    @router.get("/v1/contacts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        tag: Annotated[list[str] | None, Query(description="Contacts with all of these tags.")] = None,
        language: str | None = None,
        timezone: str | None = None,
        channel: Annotated[str | None, Query(description="Contacts with an address here.")] = None,
        address: Annotated[str | None, Query(description="Requires `channel`.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List contacts, newest first. A page can be short; only `next: null` marks the end."""
        if address is not None:
            return json_response(await _with_address(outbound, channel, address))
        filters = {"tags_all": tag, "language": language, "timezone": timezone, "channel": channel}
        wanted: ContactFilter | None = None
        if any(filters.values()):
            wanted = read_filter(filters, outbound.contacts.channels)
        return page_response(await outbound.contacts.page(wanted, limit=limit, after=after))

    @router.post(IMPORT, dependencies=STRICT_QUERY, openapi_extra=UPLOAD, **content_options(NDJSON, errors=NOT_FOUND))
    @requires(OPERATE)
    async def bulk_import(
        request: Request,
        *,
        channel: Annotated[str | None, Query(description="Channel of the column `address`.")] = None,
        names: Annotated[list[str] | None, Query(alias="map", description="As COLUMN=FIELD.")] = None,
        tag: Annotated[list[str] | None, Query(description="Add these tags to all.")] = None,
        list_: Annotated[str | None, Query(alias="list", description="Add all to this list.")] = None,
        all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> Response:
        """Create or update contacts by address from CSV or NDJSON; returns invalid rows and a summary."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        columns = ContactColumns(
            outbound.contacts.channels,
            channel=channel,
            names=parse_column_names(names or []),
            tags=tag or (),
            is_table=form == "csv",
        )
        list_id = None if list_ is None else (await outbound.audience.with_members(list_))["id"]
        upload = RewindableStream(request.stream())

        def read() -> AsyncIterator[NumberedRow]:
            return read_rows(upload.pieces(), form, largest=largest, most_lines=most)

        imported = import_contacts(
            read,
            outbound.contacts,
            columns,
            list_=list_id,
            all_or_nothing=all_or_nothing,
            dry_run=dry_run,
            tenant=current_caller().tenant,
        )
        return await import_response(
            request,
            imported,
            COUNTS,
            more=lambda: {"attributes": sorted(columns.attributes), "dry_run": dry_run},
            close=upload.close,
        )

    @router.get("/v1/contacts/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one contact."""
        return json_response(await outbound.contacts.show(id))

    @router.patch("/v1/contacts/{id}", **action_options(CONTACT_FIELDS, required=True))
    @requires(OPERATE)
    async def edit(id: str, request: Request) -> Response:
        """Update the given fields; an empty string removes a value."""
        return json_response(await outbound.contacts.edit(id, await read_json(request)))

    @router.delete("/v1/contacts/{id}", responses=NOT_FOUND)
    @requires(OPERATE)
    async def remove(id: str, request: Request) -> Response:
        """Delete a contact with its addresses and list memberships."""
        await read_fields(request, {})
        await outbound.contacts.remove(id)
        return json_response({"id": id, "removed": True})

    return router


async def _with_address(outbound: OutboundService, channel: str | None, address: str) -> dict[str, Any]:
    if channel is None:
        raise Invalid("address requires channel", field="channel", remedy="add &channel=phone")
    found = await outbound.contacts.at(channel, address)
    return {"items": [] if found is None else [found], "next": None}
