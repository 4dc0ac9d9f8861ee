"""Migrations: jobs that move records between systems, made, planned, run, watched and repaired."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from ...access.caller import current
from ...access.rules import ADMIN, OPERATE, READ, allowed
from ...migration import shown
from ...migration.desk import Migrations
from ...migration.jobfile import KEYS, Job, read_job
from ...migration.jobs import Action, JobState
from ...migration.words import Standing
from ...model.errors import Invalid
from ...outbound import repeats
from ...outbound.people.uploads import form_of
from ...reading.cursor import NEWEST, page_size, place
from ...reading.fields import Field, hint
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, gives, read_fields, read_json, takes
from ..exchange import CSV, NDJSON, UPLOAD
from ..going import differences, undoings
from ..queries import CHECKED, After
from ..repairs import FORMS, exported, repaired
from .bulk import refuse_announced

ROOT = "/v1/migrations"
ONE = ROOT + "/{id}"
REPAIRED = ONE + "/repaired"
JOB = {
    "name": Field("string", "what it is called", "affinity to attio", required=True),
    "tenant": Field("string", "whose it is; the caller's, and no other", "default"),
    "priority": Field("integer", "whose batches go first: 0 (first) to 9 (last)", 5),
    "source": Field("object", "kind and options of the source; credentials by reference only", required=True),
    "target": Field("object", "the same of the target", required=True),
    "types": Field("object", "record types with their maps, as in a job file", required=True),
    "retry": Field("object", "strategies per kind of error"),
    "limits": Field("object", "what the job allows itself"),
    "not_migrated": Field("object", "types that stay behind, with the reason"),
}
LOOK = {"look": Field("boolean", "whether the target is asked what is there", True)}
DRY_RUN = {"dry_run": Field("boolean", "only say what would become of each record", False)}
REASON = {"reason": Field("string", "shown with it", "the target is being moved")}
WHICH = {
    "cause": Field("string", "only of this cause", "validation/people/email/type"),
    "type": Field("string", "only of this record type", "people"),
}
OfType = Annotated[str | None, Query(description="only of this record type")]
OfCause = Annotated[str | None, Query(description="only of this cause")]
assert set(JOB) == set(KEYS)


def routes(migrations: Migrations, *, most: int) -> APIRouter:
    """Everything under /v1/migrations; `most` is for the rows of an upload."""
    router = APIRouter(tags=["migrations"], responses=PROBLEMS)
    _making(router, migrations)
    _looking(router, migrations)
    _moving(router, migrations)
    _records(router, migrations)
    _mending(router, migrations, most)
    return router


def _making(router: APIRouter, migrations: Migrations) -> None:
    @router.post(ROOT, status_code=201, openapi_extra=takes(JOB, keyed=True), responses=CONFLICT)
    @allowed(ADMIN, whole=True)
    async def create(request: Request) -> Response:
        """Keep a job, as a job file says it; nothing runs yet. It reaches what the settings open."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        job, once = _own(body), None
        if key is not None:
            once = repeats.once("migrations", key, body, None, tenant=job.tenant, until=0)
        made = await migrations.create_once(job, once, by=current().who)
        if made.earlier is None or once is None:
            return answer(shown.job(made.job), 201, {"location": f"{ROOT}/{made.job.id}"})
        first = repeats.same(made.earlier, once)
        headers = {"location": f"{ROOT}/{first['id']}", "idempotency-replayed": "true"}
        return answer(first, 201, headers)

    @router.put(ONE + "/job", openapi_extra=takes(JOB), responses=MISSING | CONFLICT)
    @allowed(ADMIN, whole=True)
    async def mend(request: Request, id: str) -> Response:
        """A repaired map: what was set aside is opened again under it, and only that."""
        job = _own(await read_json(request))
        return answer({"id": id, "opened": await migrations.replay(id, by=current().who, job=job)})


def _looking(router: APIRouter, migrations: Migrations) -> None:
    @router.get(ROOT, dependencies=CHECKED)
    @allowed(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="only in this state")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Jobs, the newest first."""
        wanted, size = _word(JobState, "state", state), page_size(limit)
        before = None if after is None else place(after)
        found = await migrations.page(state=wanted, before=before, limit=size)
        more = str(found[-1].n) if len(found) == size else None
        return answer({"items": [shown.job(one) for one in found], "next": more})

    @router.get(ONE, responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One job: how far it is, by type and state, its rate, what is left, what holds it up."""
        return answer(shown.status(await migrations.status(id)))

    @router.get(ONE + "/lint", responses=MISSING, dependencies=CHECKED)
    @allowed(OPERATE)
    async def lint(id: str) -> Response:
        """The map against both systems: what would be lost or refused. Both are asked."""
        return answer({"items": [shown.finding(one) for one in await migrations.lint(id)]})

    @router.get(ONE + "/plan", responses=MISSING | CONFLICT, dependencies=CHECKED)
    @allowed(READ)
    async def plan_report(id: str) -> Response:
        """What a run would do: counts by type, causes, calls, time, and whether it fits this month."""
        return answer(shown.plan(await migrations.plan_report(id)))

    @router.get(ONE + "/plan/records", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def plan_records(
        id: str,
        *,
        type: OfType = None,
        action: Annotated[str | None, Query(description="only what would be done like this")] = None,
        limit: int = 100,
        after: After = None,
    ) -> Response:
        """Planned records, each with what would be done and the fields that would change."""
        wanted, size = _word(Action, "action", action), page_size(limit)
        found = await migrations.plan_page(id, type=type, action=wanted, after=_after(after), limit=size)
        return answer(_page(found, size))

    @router.get(ONE + "/audit", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def audit(id: str) -> Response:
        """Who did what to it, and when."""
        return answer({"items": [shown.row(one) for one in await migrations.audit(id)]})


def _moving(router: APIRouter, migrations: Migrations) -> None:
    wish: dict[str, Any] = {"responses": MISSING | CONFLICT}

    @router.post(ONE + "/plan", openapi_extra=takes(LOOK, required=False), **wish)
    @allowed(OPERATE)
    async def plan(request: Request, id: str) -> Response:
        """Begin a dry run: everything is read and mapped, nothing is written. It is over at `planned`."""
        look = (await read_fields(request, LOOK)).get("look")
        begun = await migrations.plan(id, by=current().who, look=look is None or look)
        return answer(shown.job(begun))

    @router.post(ONE + "/approve", **wish)
    @allowed(OPERATE)
    async def approve(request: Request, id: str) -> Response:
        """The plan may be run."""
        await read_fields(request, {})
        return answer(shown.job(await migrations.approve(id, by=current().who)))

    @router.post(ONE + "/run", **wish)
    @allowed(OPERATE)
    async def run(request: Request, id: str) -> Response:
        """Begin: the approved plan exactly, or without a plan everything. One that is over begins again."""
        await read_fields(request, {})
        return answer(shown.job(await migrations.run(id, by=current().who)))

    @router.post(ONE + "/pause", openapi_extra=takes(REASON, required=False), **wish)
    @allowed(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Nothing new is read or written until it is resumed."""
        reason = (await read_fields(request, REASON)).get("reason") or "by hand"
        return answer(shown.job(await migrations.pause(id, by=current().who, reason=reason)))

    @router.post(ONE + "/resume", **wish)
    @allowed(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Go on."""
        await read_fields(request, {})
        return answer(shown.job(await migrations.resume(id, by=current().who)))

    @router.post(ONE + "/cancel", openapi_extra=takes(REASON, required=False), **wish)
    @allowed(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Stop for good; what is written stays."""
        reason = (await read_fields(request, REASON)).get("reason") or "by hand"
        return answer(shown.job(await migrations.cancel(id, by=current().who, reason=reason)))

    @router.post(ONE + "/verify", response_class=Response, responses=MISSING | CONFLICT | gives(NDJSON))
    @allowed(OPERATE)
    async def verify(request: Request, id: str) -> Response:
        """Every record of the source against the target: a line for each difference, the report last."""
        await read_fields(request, {})
        await migrations.find(id)
        return StreamingResponse(differences(migrations, id), media_type=NDJSON)

    @router.post(
        ONE + "/undo",
        openapi_extra=takes(DRY_RUN, required=False),
        response_class=Response,
        responses=MISSING | CONFLICT | gives(NDJSON),
    )
    @allowed(OPERATE)
    async def undo(request: Request, id: str) -> Response:
        """Take out of the target what the job has created: a line for each record, the counts last."""
        dry_run = bool((await read_fields(request, DRY_RUN)).get("dry_run"))
        await migrations.check_undo(id)
        lines = undoings(migrations, id, by=current().who, dry_run=dry_run)
        return StreamingResponse(lines, media_type=NDJSON)


def _records(router: APIRouter, migrations: Migrations) -> None:
    @router.get(ONE + "/records", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def records(
        id: str,
        *,
        type: OfType = None,
        state: Annotated[str | None, Query(description="only those that stand there")] = None,
        limit: int = 100,
        after: After = None,
    ) -> Response:
        """Records with where they stand and why, in the order in which they were read."""
        standing, size = _word(Standing, "state", state), page_size(limit)
        found = await migrations.records(id, type=type, standing=standing, after=_after(after), limit=size)
        return answer(_page(found, size))

    @router.get(ONE + "/records/{type}/{source_id:path}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def record(id: str, type: str, source_id: str) -> Response:
        """One record: what the source said, and every attempt at it."""
        found = await migrations.record(id, type, source_id)
        return answer(shown.record(found, await migrations.find(id)))

    @router.get(ONE + "/crosswalk/{type}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def crosswalk(
        id: str,
        type: str,
        *,
        source_id: Annotated[str | None, Query(description="by the source's id")] = None,
        target_id: Annotated[str | None, Query(description="or by the target's")] = None,
    ) -> Response:
        """Which record of the target is which of the source."""
        found = await migrations.crosswalk(id, type, source_id=source_id, target_id=target_id)
        return answer({"items": [shown.row(one) for one in found]})


def _mending(router: APIRouter, migrations: Migrations, most: int) -> None:
    wish: dict[str, Any] = {"responses": MISSING | CONFLICT}

    @router.get(ONE + "/dead", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def dead(id: str) -> Response:
        """What was set aside, by cause, the most frequent first."""
        return answer({"items": [shown.cause(one) for one in await migrations.dead(id)]})

    @router.get(
        ONE + "/dead/export",
        response_class=Response,
        responses=MISSING | gives(NDJSON, CSV),
        dependencies=CHECKED,
    )
    @allowed(OPERATE)
    async def export(
        id: str,
        *,
        format: Annotated[
            str, Query(description="ndjson, csv (safe for spreadsheets) or csv-exact")
        ] = "ndjson",
        cause: OfCause = None,
        type: OfType = None,
    ) -> Response:
        """The records that were set aside, as the source has them: mend them and send them back."""
        if format not in FORMS:
            remedy = f"use one of: {', '.join(FORMS)}"
            raise Invalid(f"there is no format {format[:40]!r}", field="format", remedy=remedy)
        await migrations.find(id)
        name = f"set-aside.{'ndjson' if format == 'ndjson' else 'csv'}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        kind = NDJSON if format == "ndjson" else "text/csv; charset=utf-8"
        pieces = exported(migrations, id, form=format, cause=cause, type_=type)
        return StreamingResponse(pieces, 200, headers, media_type=kind)

    @router.post(ONE + "/replay", openapi_extra=takes(WHICH, required=False), **wish)
    @allowed(OPERATE)
    async def replay(request: Request, id: str) -> Response:
        """Open what was set aside again, and only that."""
        which = await read_fields(request, WHICH)
        opened = await migrations.replay(
            id, by=current().who, fingerprint=which.get("cause"), type=which.get("type")
        )
        return answer({"id": id, "opened": opened})

    @router.post(REPAIRED, openapi_extra=UPLOAD, **wish)
    @allowed(OPERATE)
    async def mended(request: Request, id: str) -> Response:
        """Repaired records as CSV or NDJSON, as exported; these are opened again, and only these."""
        refuse_announced(request)
        form = form_of(request.headers.get("content-type", ""))
        await migrations.find(id)
        async with repaired(request.stream(), form, most=most) as records:
            opened = await migrations.replay(id, by=current().who, repaired=records)
        return answer({"id": id, "opened": opened})


def _own(raw: Any) -> Job:
    """A job of the caller's own tenant; no code of the caller's choice runs in here."""
    tenant = current().tenant
    if isinstance(raw, dict):
        raw = {"tenant": tenant, **raw}
    job = read_job(raw)
    if job.tenant != tenant:
        raise Invalid(
            f"tenant is {job.tenant!r}, and your key is one of {tenant!r}",
            field="tenant",
            remedy="leave it out",
        )
    return job


def _page(found: list[dict[str, Any]], size: int) -> dict[str, Any]:
    more = str(found[-1]["seq"]) if len(found) == size else None
    return {"items": [shown.row(one) for one in found], "next": more}


def _after(after: str | None) -> int:
    return 0 if after is None else min(place(after), NEWEST)


def _word(words: Any, name: str, given: str | None) -> Any:
    if given is not None and given not in list(words):
        known = {str(word): None for word in words}
        remedy = hint(given, known).replace("known fields", "use one of")
        raise Invalid(f"there is no {name} {given[:40]!r}", field=name, remedy=remedy)
    return None if given is None else words(given)
