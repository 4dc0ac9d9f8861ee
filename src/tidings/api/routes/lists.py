"""Lists: contacts that belong together, by name or by a saved filter."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...outbound.desk import Desk
from ...outbound.people.audience import CHANGES, FIELDS, MEMBERS
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, created, read_fields, read_json, takes
from ..queries import CHECKED, After


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/lists; `{list}` is a list's id or its name."""
    router = APIRouter(prefix="/v1/lists", tags=["lists"], responses=PROBLEMS)

    @router.post("", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT)
    @allowed(OPERATE)
    async def create(request: Request) -> Response:
        """A new list; with a filter it finds its members by what is on their cards, each time anew."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.audience.create(body, key=key)
        return created(made, f"/v1/lists/{made.answer['id']}")

    @router.get("", dependencies=CHECKED)
    @allowed(READ)
    async def page(limit: int = 50, after: After = None) -> Response:
        """Lists, by name, each with the number of its members as far as that is counted."""
        return answer((await desk.audience.page(limit=limit, after=after))._asdict())

    @router.get("/{list}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(list: str) -> Response:
        """One list."""
        return answer(await desk.audience.show(list))

    @router.patch("/{list}", responses=MISSING | CONFLICT, openapi_extra=takes(CHANGES))
    @allowed(OPERATE)
    async def edit(list: str, request: Request) -> Response:
        """Another name, or another filter."""
        return answer(await desk.audience.edit(list, await read_json(request)))

    @router.delete("/{list}", responses=MISSING)
    @allowed(OPERATE)
    async def remove(list: str, request: Request) -> Response:
        """Forget a list; the contacts stay."""
        await read_fields(request, {})
        await desk.audience.remove(list)
        return answer({"list": list, "removed": True})

    @router.get("/{list}/members", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def members(list: str, *, limit: int = 50, after: After = None) -> Response:
        """Who is on it. A page may be short before the end; `next` is null only there."""
        return answer((await desk.audience.members(list, limit=limit, after=after))._asdict())

    @router.post("/{list}/members", responses=MISSING | CONFLICT, openapi_extra=takes(MEMBERS))
    @allowed(OPERATE)
    async def add(list: str, request: Request) -> Response:
        """Put contacts on it; those that are on it stay."""
        given = await read_fields(request, MEMBERS)
        return answer({"added": await desk.audience.add(list, given["contacts"])})

    @router.post("/{list}/members/remove", responses=MISSING | CONFLICT, openapi_extra=takes(MEMBERS))
    @allowed(OPERATE)
    async def drop(list: str, request: Request) -> Response:
        """Take contacts off it."""
        given = await read_fields(request, MEMBERS)
        return answer({"removed": await desk.audience.drop(list, given["contacts"])})

    return router
