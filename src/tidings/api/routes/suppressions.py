"""Suppressions: who has opted out, the way in and the way back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.caller import current
from ...access.rules import OPERATE, READ, SEND, allowed
from ...outbound.desk import Desk
from ...outbound.people.intake import take_opt_outs
from ...outbound.people.suppressions import FIELDS
from ...outbound.people.uploads import form_of, rows
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, created, gives, read_json, takes
from ..errors import id_of
from ..exchange import NDJSON, UPLOAD, Exchange, rows_told
from ..queries import CHECKED, After
from .bulk import refuse_announced

IMPORT = "/v1/suppressions:import"
COUNTS = ("created", "unchanged", "refused")


def routes(desk: Desk, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/suppressions; `largest` is for a row in bytes, `most` for their number."""
    router = APIRouter(tags=["suppressions"], responses=PROBLEMS)

    @router.post(
        "/v1/suppressions", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT
    )
    @allowed(SEND)
    async def create(request: Request) -> Response:
        """Opt out: what is due to this address is skipped from now on, also what was accepted before."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.suppressions.create(body, key=key)
        return created(made)

    @router.get("/v1/suppressions", dependencies=CHECKED)
    @allowed(READ)
    async def page(
        *,
        address: Annotated[str | None, Query(description="only this one")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who has opted out, by address; `channel` is null where it is all of them."""
        return answer((await desk.suppressions.page(address=address, limit=limit, after=after))._asdict())

    @router.delete("/v1/suppressions", responses=MISSING, dependencies=CHECKED)
    @allowed(OPERATE)
    async def remove(
        address: str,
        channel: Annotated[str | None, Query(description="left out: the opt-out from all of them")] = None,
    ) -> Response:
        """The way back: this address may be written to again."""
        await desk.suppressions.remove(address, channel)
        return answer({"address": address, "channel": channel, "removed": True})

    @router.post(
        IMPORT, dependencies=CHECKED, openapi_extra=UPLOAD, response_class=Response, responses=gives(NDJSON)
    )
    @allowed(OPERATE)
    async def take(
        request: Request,
        channel: Annotated[str | None, Query(description="where a row names none")] = None,
    ) -> Response:
        """Opt out many: CSV or NDJSON with `address`, `channel` and `reason`; bad rows and a summary out."""
        refuse_announced(request)
        form = form_of(request.headers.get("content-type", ""))
        upload = rows(request.stream(), form, largest=largest, most_lines=most)
        exchange = Exchange(id_of(request), COUNTS)
        taken = take_opt_outs(upload, desk.suppressions, channel=channel, tenant=current().tenant)
        exchange.start(rows_told(taken, COUNTS, id_of(request), lambda: None))
        await exchange.first_answer()
        return exchange

    return router
