"""The roster: who may speak, with squad and role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...inbound.desk import InboundDesk
from ...inbound.roster import FIELDS
from ...outbound.people.intake import Progress
from ...outbound.people.uploads import Numbered, form_of, rows
from ..bodies import MADE, MISSING, PROBLEMS, answer, gives, read_json, takes
from ..errors import id_of
from ..exchange import NDJSON, UPLOAD, Exchange, rows_told
from ..queries import CHECKED, After
from .bulk import refuse_announced

IMPORT = "/v1/roster:import"
COUNTS = ("created", "changed", "unchanged", "refused")


def routes(desk: InboundDesk, *, largest: int, most: int) -> APIRouter:
    """Everything under /v1/roster; `largest` is for a row in bytes, `most` for their number."""
    router = APIRouter(tags=["roster"], responses=PROBLEMS)

    @router.get("/v1/roster", dependencies=CHECKED)
    @allowed(READ)
    async def page(
        *,
        squad: Annotated[str | None, Query(description="only of this squad")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who may speak, by name; `source` is null where it is all of them."""
        return answer((await desk.roster.page(squad=squad, limit=limit, after=after))._asdict())

    @router.put("/v1/roster", openapi_extra=takes(FIELDS), responses=MADE)
    @allowed(OPERATE)
    async def put(request: Request) -> Response:
        """Put somebody on the roster (201), or change the entry (200)."""
        person, what = await desk.roster.put(await read_json(request))
        return answer(person, 201 if what == "created" else 200)

    @router.delete("/v1/roster", responses=MISSING, dependencies=CHECKED)
    @allowed(OPERATE)
    async def remove(
        sender: str,
        source: Annotated[str | None, Query(description="left out: the entry for every source")] = None,
    ) -> Response:
        """Take somebody off; what they said before stays."""
        return answer({**await desk.roster.remove(sender, source), "removed": True})

    @router.get("/v1/roster/log", dependencies=CHECKED)
    @allowed(READ)
    async def log(
        *,
        sender: Annotated[str | None, Query(description="only about this sender")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Who was put on it and taken off, and who spoke for somebody else, newest first."""
        return answer((await desk.roster.log(sender=sender, limit=limit, after=after))._asdict())

    @router.post(
        IMPORT, dependencies=CHECKED, openapi_extra=UPLOAD, response_class=Response, responses=gives(NDJSON)
    )
    @allowed(OPERATE)
    async def take(request: Request, *, dry_run: bool = False) -> Response:
        """Many at once: CSV or NDJSON with the fields of an entry; bad rows and a summary out."""
        refuse_announced(request)
        form = form_of(request.headers.get("content-type", ""))
        upload = rows(request.stream(), form, largest=largest, most_lines=most)
        exchange = Exchange(id_of(request), COUNTS, more=lambda: {"dry_run": dry_run})
        taken = taken_in(desk, upload, dry_run=dry_run)
        exchange.start(rows_told(taken, COUNTS, id_of(request), lambda: None))
        await exchange.first_answer()
        return exchange

    return router


async def taken_in(
    desk: InboundDesk, upload: AsyncIterator[Numbered], *, dry_run: bool
) -> AsyncIterator[Progress]:
    """An import of the roster, told as all imports are."""
    async for progress in desk.roster.take(upload, dry_run=dry_run):
        yield Progress(progress.counts, progress.bad)
