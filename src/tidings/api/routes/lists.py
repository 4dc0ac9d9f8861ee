"""Contact lists and saved filters."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...outbound.contacts.contact_lists import LIST_CHANGES, LIST_FIELDS, MEMBER_FIELDS
from ...outbound.service import OutboundService
from ..bodies import created_response, json_response, page_response, read_fields, read_json
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, action_options, create_options
from ..query_parameters import STRICT_QUERY, After


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/lists; `{list}` is the id or the name of a list."""
    router = APIRouter(prefix="/v1/lists", tags=["lists"], responses=ERROR_RESPONSES)

    @router.post("", **create_options(LIST_FIELDS))
    @requires(OPERATE)
    async def create(request: Request) -> Response:
        """Create a list. With a filter, its members are the contacts that match at the time of use."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.audience.create(body, key=key)
        return created_response(made, f"/v1/lists/{made.answer['id']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(limit: int = 50, after: After = None) -> Response:
        """List contact lists by name, with their member counts up to a limit."""
        return page_response(await outbound.audience.page(limit=limit, after=after))

    @router.get("/{list}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(list: str) -> Response:
        """Show one list."""
        return json_response(await outbound.audience.show(list))

    @router.patch("/{list}", **action_options(LIST_CHANGES, required=True))
    @requires(OPERATE)
    async def edit(list: str, request: Request) -> Response:
        """Change the name or the filter of a list."""
        return json_response(await outbound.audience.edit(list, await read_json(request)))

    @router.delete("/{list}", responses=NOT_FOUND)
    @requires(OPERATE)
    async def remove(list: str, request: Request) -> Response:
        """Delete a list; its contacts stay."""
        await read_fields(request, {})
        await outbound.audience.remove(list)
        return json_response({"list": list, "removed": True})

    @router.get("/{list}/members", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def members(list: str, *, limit: int = 50, after: After = None) -> Response:
        """List the members. A page can be short; only `next: null` marks the end."""
        return page_response(await outbound.audience.members(list, limit=limit, after=after))

    @router.post("/{list}/members", **action_options(MEMBER_FIELDS, required=True))
    @requires(OPERATE)
    async def add_members(list: str, request: Request) -> Response:
        """Add contacts to a list."""
        given = await read_fields(request, MEMBER_FIELDS)
        return json_response({"added": await outbound.audience.add(list, given["contacts"])})

    @router.post("/{list}/members/remove", **action_options(MEMBER_FIELDS, required=True))
    @requires(OPERATE)
    async def remove_members(list: str, request: Request) -> Response:
        """Remove contacts from a list."""
        given = await read_fields(request, MEMBER_FIELDS)
        return json_response({"removed": await outbound.audience.drop(list, given["contacts"])})

    return router
