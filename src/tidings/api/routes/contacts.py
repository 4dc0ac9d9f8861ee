"""Contacts: who can be written to; one by one, and many at once out of a file."""

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
from ..bodies import (
    CONFLICT,
    CREATED,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_fields,
    read_json,
    response_content,
)
from ..errors import request_id_of
from ..ndjson_streams import NDJSON, UPLOAD, NdjsonStreamResponse, import_progress
from ..query_parameters import STRICT_QUERY, After
from .bulk import reject_oversized_upload

IMPORT = "/v1/contacts:import"
COUNTS = ("created", "changed", "unchanged", "refused")


def routes(desk: OutboundService, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/contacts; `largest` is for a row in bytes, `most` for their number."""
    router = APIRouter(tags=["contacts"], responses=ERROR_RESPONSES)

    @router.post(
        "/v1/contacts",
        status_code=201,
        openapi_extra=body_schema(CONTACT_FIELDS, keyed=True),
        responses=CONFLICT,
    )
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """A new contact; an address that somebody has is refused with who has it."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.contacts.create(body, key=key)
        return created_response(made, f"/v1/contacts/{made.answer['id']}")

    @router.put("/v1/contacts", openapi_extra=body_schema(CONTACT_FIELDS), responses=CONFLICT | CREATED)
    @requires(OPERATE)
    async def put(request: Request) -> Response:
        """Create the contact (201), or change the one that has one of its addresses (200)."""
        contact, is_new = await desk.contacts.put(await read_json(request))
        return json_response(contact, 201 if is_new else 200, {"location": f"/v1/contacts/{contact['id']}"})

    @router.get("/v1/contacts", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        tag: Annotated[list[str] | None, Query(description="those with all of these tags")] = None,
        language: str | None = None,
        timezone: str | None = None,
        channel: Annotated[str | None, Query(description="those with an address on this channel")] = None,
        address: Annotated[str | None, Query(description="the one with this address on `channel`")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Contacts, newest first. A page may be short before the end; `next` is null only there."""
        if address is not None:
            return json_response(await _with_address(desk, channel, address))
        said = {"tags_all": tag, "language": language, "timezone": timezone, "channel": channel}
        wanted: ContactFilter | None = None
        if any(said.values()):
            wanted = read_filter(said, desk.contacts.channels)
        return json_response((await desk.contacts.page(wanted, limit=limit, after=after))._asdict())

    @router.post(
        IMPORT,
        dependencies=STRICT_QUERY,
        openapi_extra=UPLOAD,
        response_class=Response,
        responses=NOT_FOUND | response_content(NDJSON),
    )
    @requires(OPERATE)
    async def take(
        request: Request,
        *,
        channel: Annotated[str | None, Query(description="of a plain column `address`")] = None,
        names: Annotated[
            list[str] | None, Query(alias="map", description="what a column is that is called otherwise")
        ] = None,
        tag: Annotated[list[str] | None, Query(description="put on everybody in the file")] = None,
        list_: Annotated[
            str | None, Query(alias="list", description="a list that all of them are put on")
        ] = None,
        all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> Response:
        """Create or change many, found by their addresses: CSV or NDJSON in, bad rows and a summary out."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        columns = ContactColumns(
            desk.contacts.channels,
            channel=channel,
            names=parse_column_names(names or []),
            tags=tag or (),
            is_table=form == "csv",
        )
        put_on = None if list_ is None else (await desk.audience.with_members(list_))["id"]
        upload = RewindableStream(request.stream())

        def read() -> AsyncIterator[NumberedRow]:
            return read_rows(upload.pieces(), form, largest=largest, most_lines=most)

        taken = import_contacts(
            read,
            desk.contacts,
            columns,
            list_=put_on,
            all_or_nothing=all_or_nothing,
            dry_run=dry_run,
            tenant=current_caller().tenant,
        )
        exchange = NdjsonStreamResponse(
            request_id_of(request),
            COUNTS,
            more=lambda: {"attributes": sorted(columns.attributes), "dry_run": dry_run},
        )
        exchange.start(import_progress(taken, COUNTS, request_id_of(request), upload.close))
        await exchange.first_answer()
        return exchange

    @router.get("/v1/contacts/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One contact."""
        return json_response(await desk.contacts.show(id))

    @router.patch(
        "/v1/contacts/{id}", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(CONTACT_FIELDS)
    )
    @requires(OPERATE)
    async def edit(id: str, request: Request) -> Response:
        """Change what is named; what is left out stays, an empty text takes away."""
        return json_response(await desk.contacts.edit(id, await read_json(request)))

    @router.delete("/v1/contacts/{id}", responses=NOT_FOUND)
    @requires(OPERATE)
    async def remove(id: str, request: Request) -> Response:
        """Forget a contact, its addresses and its places on lists."""
        await read_fields(request, {})
        await desk.contacts.remove(id)
        return json_response({"id": id, "removed": True})

    return router


async def _with_address(desk: OutboundService, channel: str | None, address: str) -> dict[str, Any]:
    if channel is None:
        raise Invalid("the address has no channel", field="channel", remedy="name it: &channel=phone")
    found = await desk.contacts.at(channel, address)
    return {"items": [] if found is None else [found], "next": None}
