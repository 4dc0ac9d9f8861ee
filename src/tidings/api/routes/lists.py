"""Lists: contacts that belong together, by name or by a saved filter."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...outbound.contacts.contact_lists import LIST_CHANGES, LIST_FIELDS, MEMBER_FIELDS
from ...outbound.service import OutboundService
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_fields,
    read_json,
)
from ..query_parameters import STRICT_QUERY, After


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/lists; `{list}` is a list's id or its name."""
    router = APIRouter(prefix="/v1/lists", tags=["lists"], responses=ERROR_RESPONSES)

    @router.post("", status_code=201, openapi_extra=body_schema(LIST_FIELDS, keyed=True), responses=CONFLICT)
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """A new list; with a filter it finds its members by what is on their cards, each time anew."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.audience.create(body, key=key)
        return created_response(made, f"/v1/lists/{made.answer['id']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(limit: int = 50, after: After = None) -> Response:
        """Lists, by name, each with the number of its members as far as that is counted."""
        return json_response((await desk.audience.page(limit=limit, after=after))._asdict())

    @router.get("/{list}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(list: str) -> Response:
        """One list."""
        return json_response(await desk.audience.show(list))

    @router.patch("/{list}", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(LIST_CHANGES))
    @requires(OPERATE)
    async def edit(list: str, request: Request) -> Response:
        """Another name, or another filter."""
        return json_response(await desk.audience.edit(list, await read_json(request)))

    @router.delete("/{list}", responses=NOT_FOUND)
    @requires(OPERATE)
    async def remove(list: str, request: Request) -> Response:
        """Forget a list; the contacts stay."""
        await read_fields(request, {})
        await desk.audience.remove(list)
        return json_response({"list": list, "removed": True})

    @router.get("/{list}/members", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def members(list: str, *, limit: int = 50, after: After = None) -> Response:
        """Who is on it. A page may be short before the end; `next` is null only there."""
        return json_response((await desk.audience.members(list, limit=limit, after=after))._asdict())

    @router.post("/{list}/members", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(MEMBER_FIELDS))
    @requires(OPERATE)
    async def add(list: str, request: Request) -> Response:
        """Put contacts on it; those that are on it stay."""
        given = await read_fields(request, MEMBER_FIELDS)
        return json_response({"added": await desk.audience.add(list, given["contacts"])})

    @router.post(
        "/{list}/members/remove", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(MEMBER_FIELDS)
    )
    @requires(OPERATE)
    async def drop(list: str, request: Request) -> Response:
        """Take contacts off it."""
        given = await read_fields(request, MEMBER_FIELDS)
        return json_response({"removed": await desk.audience.drop(list, given["contacts"])})

    return router
