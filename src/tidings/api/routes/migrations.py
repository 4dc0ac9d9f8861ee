"""Migrations: jobs that move records between systems, made, planned, run, watched and repaired."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from ...access.caller import current_caller
from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...inputs.fields import Field, hint
from ...inputs.pagination import NEWEST, decode_position, page_size
from ...migration import serializers
from ...migration.job_file import KEYS, MigrationJob, read_job
from ...migration.jobs import JobState, PlannedAction
from ...migration.record_states import RecordState
from ...migration.service import MigrationService
from ...model.errors import Invalid
from ...outbound import idempotency
from ...outbound.contacts.uploads import upload_format
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    json_response,
    read_fields,
    read_json,
    response_content,
)
from ..migration_repairs import FORMS, export_records, read_repaired
from ..migration_streams import stream_undo, stream_verification
from ..ndjson_streams import CSV, NDJSON, UPLOAD
from ..query_parameters import STRICT_QUERY, After
from .bulk import reject_oversized_upload

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


def routes(migrations: MigrationService, *, most: int) -> APIRouter:
    """Everything under /v1/migrations; `most` is for the rows of an upload."""
    router = APIRouter(tags=["migrations"], responses=ERROR_RESPONSES)
    _create_routes(router, migrations)
    _read_routes(router, migrations)
    _action_routes(router, migrations)
    _record_routes(router, migrations)
    _repair_routes(router, migrations, most)
    return router


def _create_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.post(ROOT, status_code=201, openapi_extra=body_schema(JOB, keyed=True), responses=CONFLICT)
    @requires(ADMIN, whole=True)
    async def create(request: Request) -> Response:
        """Keep a job, as a job file says it; nothing runs yet. It reaches what the settings open."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        job, once = _own(body), None
        if key is not None:
            once = idempotency.idempotency_key("migrations", key, body, None, tenant=job.tenant, until=0)
        made = await migrations.create_once(job, once, by=current_caller().who)
        if made.earlier is None or once is None:
            return json_response(serializers.job(made.job), 201, {"location": f"{ROOT}/{made.job.id}"})
        first = idempotency.replayed_answer(made.earlier, once)
        headers = {"location": f"{ROOT}/{first['id']}", "idempotency-replayed": "true"}
        return json_response(first, 201, headers)

    @router.put(ONE + "/job", openapi_extra=body_schema(JOB), responses=NOT_FOUND | CONFLICT)
    @requires(ADMIN, whole=True)
    async def mend(request: Request, id: str) -> Response:
        """A repaired map: what was set aside is opened again under it, and only that."""
        job = _own(await read_json(request))
        return json_response(
            {"id": id, "opened": await migrations.replay(id, by=current_caller().who, job=job)}
        )


def _read_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.get(ROOT, dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="only in this state")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Jobs, the newest first."""
        wanted, size = _word(JobState, "state", state), page_size(limit)
        before = None if after is None else decode_position(after)
        found = await migrations.page(state=wanted, before=before, limit=size)
        more = str(found[-1].n) if len(found) == size else None
        return json_response({"items": [serializers.job(one) for one in found], "next": more})

    @router.get(ONE, responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One job: how far it is, by type and state, its rate, what is left, what holds it up."""
        return json_response(serializers.status(await migrations.status(id)))

    @router.get(ONE + "/lint", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def lint(id: str) -> Response:
        """The map against both systems: what would be lost or refused. Both are asked."""
        return json_response({"items": [serializers.finding(one) for one in await migrations.lint(id)]})

    @router.get(ONE + "/plan", responses=NOT_FOUND | CONFLICT, dependencies=STRICT_QUERY)
    @requires(READ)
    async def plan_report(id: str) -> Response:
        """What a run would do: counts by type, causes, calls, time, and whether it fits this month."""
        return json_response(serializers.plan(await migrations.plan_report(id)))

    @router.get(ONE + "/plan/records", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def plan_records(
        id: str,
        *,
        type: OfType = None,
        action: Annotated[str | None, Query(description="only what would be done like this")] = None,
        limit: int = 100,
        after: After = None,
    ) -> Response:
        """Planned records, each with what would be done and the fields that would change."""
        wanted, size = _word(PlannedAction, "action", action), page_size(limit)
        found = await migrations.plan_page(id, type=type, action=wanted, after=_after(after), limit=size)
        return json_response(_page(found, size))

    @router.get(ONE + "/audit", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def audit(id: str) -> Response:
        """Who did what to it, and when."""
        return json_response({"items": [serializers.row(one) for one in await migrations.audit(id)]})


def _action_routes(router: APIRouter, migrations: MigrationService) -> None:
    wish: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.post(ONE + "/plan", openapi_extra=body_schema(LOOK, required=False), **wish)
    @requires(OPERATE)
    async def plan(request: Request, id: str) -> Response:
        """Begin a dry run: everything is read and mapped, nothing is written. It is over at `planned`."""
        look = (await read_fields(request, LOOK)).get("look")
        begun = await migrations.plan(id, by=current_caller().who, look=look is None or look)
        return json_response(serializers.job(begun))

    @router.post(ONE + "/approve", **wish)
    @requires(OPERATE)
    async def approve(request: Request, id: str) -> Response:
        """The plan may be run."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.approve(id, by=current_caller().who)))

    @router.post(ONE + "/run", **wish)
    @requires(OPERATE)
    async def run(request: Request, id: str) -> Response:
        """Begin: the approved plan exactly, or without a plan everything. One that is over begins again."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.run(id, by=current_caller().who)))

    @router.post(ONE + "/pause", openapi_extra=body_schema(REASON, required=False), **wish)
    @requires(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Nothing new is read or written until it is resumed."""
        reason = (await read_fields(request, REASON)).get("reason") or "by hand"
        return json_response(
            serializers.job(await migrations.pause(id, by=current_caller().who, reason=reason))
        )

    @router.post(ONE + "/resume", **wish)
    @requires(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Go on."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.resume(id, by=current_caller().who)))

    @router.post(ONE + "/cancel", openapi_extra=body_schema(REASON, required=False), **wish)
    @requires(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Stop for good; what is written stays."""
        reason = (await read_fields(request, REASON)).get("reason") or "by hand"
        return json_response(
            serializers.job(await migrations.cancel(id, by=current_caller().who, reason=reason))
        )

    @router.post(
        ONE + "/verify", response_class=Response, responses=NOT_FOUND | CONFLICT | response_content(NDJSON)
    )
    @requires(OPERATE)
    async def verify(request: Request, id: str) -> Response:
        """Every record of the source against the target: a line for each difference, the report last."""
        await read_fields(request, {})
        await migrations.find(id)
        return StreamingResponse(stream_verification(migrations, id), media_type=NDJSON)

    @router.post(
        ONE + "/undo",
        openapi_extra=body_schema(DRY_RUN, required=False),
        response_class=Response,
        responses=NOT_FOUND | CONFLICT | response_content(NDJSON),
    )
    @requires(OPERATE)
    async def undo(request: Request, id: str) -> Response:
        """Take out of the target what the job has created: a line for each record, the counts last."""
        dry_run = bool((await read_fields(request, DRY_RUN)).get("dry_run"))
        await migrations.check_undo(id)
        lines = stream_undo(migrations, id, by=current_caller().who, dry_run=dry_run)
        return StreamingResponse(lines, media_type=NDJSON)


def _record_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.get(ONE + "/records", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def records(
        id: str,
        *,
        type: OfType = None,
        state: Annotated[str | None, Query(description="only those that stand there")] = None,
        limit: int = 100,
        after: After = None,
    ) -> Response:
        """Records with where they stand and why, in the order in which they were read."""
        standing, size = _word(RecordState, "state", state), page_size(limit)
        found = await migrations.records(id, type=type, standing=standing, after=_after(after), limit=size)
        return json_response(_page(found, size))

    @router.get(ONE + "/records/{type}/{source_id:path}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def record(id: str, type: str, source_id: str) -> Response:
        """One record: what the source said, and every attempt at it."""
        found = await migrations.record(id, type, source_id)
        return json_response(serializers.record(found, await migrations.find(id)))

    @router.get(ONE + "/crosswalk/{type}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def crosswalk(
        id: str,
        type: str,
        *,
        source_id: Annotated[str | None, Query(description="by the source's id")] = None,
        target_id: Annotated[str | None, Query(description="or by the target's")] = None,
    ) -> Response:
        """Which record of the target is which of the source."""
        found = await migrations.crosswalk(id, type, source_id=source_id, target_id=target_id)
        return json_response({"items": [serializers.row(one) for one in found]})


def _repair_routes(router: APIRouter, migrations: MigrationService, most: int) -> None:
    wish: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.get(ONE + "/dead", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def dead(id: str) -> Response:
        """What was set aside, by cause, the most frequent first."""
        return json_response({"items": [serializers.cause(one) for one in await migrations.dead(id)]})

    @router.get(
        ONE + "/dead/export",
        response_class=Response,
        responses=NOT_FOUND | response_content(NDJSON, CSV),
        dependencies=STRICT_QUERY,
    )
    @requires(OPERATE)
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
        pieces = export_records(migrations, id, form=format, cause=cause, type_=type)
        return StreamingResponse(pieces, 200, headers, media_type=kind)

    @router.post(ONE + "/replay", openapi_extra=body_schema(WHICH, required=False), **wish)
    @requires(OPERATE)
    async def replay(request: Request, id: str) -> Response:
        """Open what was set aside again, and only that."""
        which = await read_fields(request, WHICH)
        opened = await migrations.replay(
            id, by=current_caller().who, fingerprint=which.get("cause"), type=which.get("type")
        )
        return json_response({"id": id, "opened": opened})

    @router.post(REPAIRED, openapi_extra=UPLOAD, **wish)
    @requires(OPERATE)
    async def mended(request: Request, id: str) -> Response:
        """Repaired records as CSV or NDJSON, as exported; these are opened again, and only these."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        await migrations.find(id)
        async with read_repaired(request.stream(), form, most=most) as records:
            opened = await migrations.replay(id, by=current_caller().who, repaired=records)
        return json_response({"id": id, "opened": opened})


def _own(raw: Any) -> MigrationJob:
    """A job of the caller's own tenant; no code of the caller's choice runs in here."""
    tenant = current_caller().tenant
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
    return {"items": [serializers.row(one) for one in found], "next": more}


def _after(after: str | None) -> int:
    return 0 if after is None else min(decode_position(after), NEWEST)


def _word(words: Any, name: str, given: str | None) -> Any:
    if given is not None and given not in list(words):
        known = {str(word): None for word in words}
        remedy = hint(given, known).replace("known fields", "use one of")
        raise Invalid(f"there is no {name} {given[:40]!r}", field=name, remedy=remedy)
    return None if given is None else words(given)
