"""Migration jobs: create, plan, run, verify, undo, repair."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from ...access.caller import current_caller
from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...inputs.fields import Field
from ...inputs.pagination import NEWEST, decode_position, page_size
from ...migration import serializers
from ...migration.job_file import KEYS, MigrationJob, read_job
from ...migration.job_file_section import parse_choice
from ...migration.jobs import BatchState, JobState, PlannedAction
from ...migration.record_states import RecordState
from ...migration.service import MigrationService
from ...model.errors import Invalid
from ...outbound import idempotency
from ...outbound.contacts.uploads import upload_format
from ..bodies import REASON, json_response, read_fields, read_json, read_reason
from ..body_limits import reject_oversized_upload
from ..migration_repairs import FORMS, export_records, read_repaired
from ..migration_streams import stream_undo, stream_verification
from ..ndjson_streams import CSV, NDJSON, UPLOAD
from ..openapi_responses import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    action_options,
    body_schema,
    content_options,
    create_options,
)
from ..query_parameters import STRICT_QUERY, After, State

ROOT = "/v1/migrations"
ONE = ROOT + "/{id}"
REPAIRED = ONE + "/repaired"
JOB = {
    "name": Field("string", "name of the job", "affinity to attio", required=True),
    "tenant": Field("string", "tenant of the job; must be that of the caller", "default"),
    "priority": Field("integer", "priority of its batches: 0 (first) to 9 (last)", 5),
    "source": Field("object", "kind and options of the source; credentials only by reference", required=True),
    "target": Field("object", "kind and options of the target", required=True),
    "types": Field("object", "record types with their mappings, as in a job file", required=True),
    "retry": Field("object", "retry policy per kind of error"),
    "limits": Field("object", "limits of the job"),
    "not_migrated": Field("object", "types that are not migrated, with the reason"),
}
LOOKUP = {"lookup": Field("boolean", "look up existing records in the target", True)}
DRY_RUN = {"dry_run": Field("boolean", "only report what would happen to each record", False)}
WHICH = {
    "cause": Field("string", "filter by cause", "validation/people/email/type"),
    "type": Field("string", "filter by record type", "people"),
}
OfType = Annotated[str | None, Query(description="Filter by record type.")]
OfCause = Annotated[str | None, Query(description="Filter by cause.")]
assert set(JOB) == set(KEYS)


def routes(migrations: MigrationService, *, most: int) -> APIRouter:
    """Return the routes under /v1/migrations; `most` limits the rows of an upload."""
    router = APIRouter(tags=["migrations"], responses=ERROR_RESPONSES)
    _create_routes(router, migrations)
    _read_routes(router, migrations)
    _action_routes(router, migrations)
    _record_routes(router, migrations)
    _repair_routes(router, migrations, most)
    return router


def _create_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.post(ROOT, **create_options(JOB))
    @requires(ADMIN, engine_wide=True)
    async def create(request: Request) -> Response:
        """Create a job in the format of a job file, without starting it. The settings limit its access."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        job, once = _own_job(body), None
        if key is not None:
            once = idempotency.idempotency_key("migrations", key, body, None, tenant=job.tenant, until=0)
        made = await migrations.create_once(job, once, by=current_caller().who)
        if made.earlier is None or once is None:
            return json_response(serializers.job(made.job), 201, {"location": f"{ROOT}/{made.job.id}"})
        first = idempotency.replayed_answer(made.earlier, once)
        headers = {"location": f"{ROOT}/{first['id']}", "idempotency-replayed": "true"}
        return json_response(first, 201, headers)

    @router.put(ONE + "/job", **action_options(JOB, required=True))
    @requires(ADMIN, engine_wide=True)
    async def replace_job(request: Request, id: str) -> Response:
        """Replace the mapping and reopen the quarantined records."""
        job = _own_job(await read_json(request))
        return json_response({"id": id, "opened": await migrations.replay(id, by=current_caller().who, job=job)})


def _read_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.get(ROOT, dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(*, state: State = None, limit: int = 50, after: After = None) -> Response:
        """List jobs, newest first."""
        wanted, size = parse_choice(JobState, "state", state), page_size(limit)
        before = None if after is None else decode_position(after)
        found = await migrations.page(state=wanted, before=before, limit=size)
        more = str(found[-1].n) if len(found) == size else None
        return json_response({"items": [serializers.job(one) for one in found], "next": more})

    @router.get(ONE, responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one job: progress by type and state, rate, remaining work, and what blocks it."""
        return json_response(serializers.status(await migrations.status(id)))

    @router.get(ONE + "/lint", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(OPERATE)
    async def lint(id: str) -> Response:
        """Check the mapping against both systems: what would be lost or rejected."""
        return json_response({"items": [serializers.finding(one) for one in await migrations.lint(id)]})

    @router.get(ONE + "/plan", responses=NOT_FOUND | CONFLICT, dependencies=STRICT_QUERY)
    @requires(READ)
    async def plan_report(id: str) -> Response:
        """Show the plan: counts by type, causes, calls, duration, and whether it fits the monthly quota."""
        return json_response(serializers.plan(await migrations.plan_report(id)))

    @router.get(ONE + "/plan/records", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def plan_records(
        id: str,
        *,
        type: OfType = None,
        action: Annotated[str | None, Query(description="Filter by planned action.")] = None,
        limit: int = 100,
        after: After = None,
    ) -> Response:
        """List planned records with their action and the fields that would change."""
        wanted, size = parse_choice(PlannedAction, "action", action), page_size(limit)
        found = await migrations.plan_page(id, type=type, action=wanted, after=_after(after), limit=size)
        return json_response(_page(found, size))

    @router.get(ONE + "/audit", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def audit(id: str) -> Response:
        """List the audit entries of a job."""
        return json_response({"items": [serializers.row(one) for one in await migrations.audit(id)]})


def _action_routes(router: APIRouter, migrations: MigrationService) -> None:
    errors: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.post(ONE + "/plan", **action_options(LOOKUP))
    @requires(OPERATE)
    async def plan(request: Request, id: str) -> Response:
        """Start a dry run: read and map everything, write nothing. It ends in the state `planned`."""
        lookup = (await read_fields(request, LOOKUP)).get("lookup")
        begun = await migrations.plan(id, by=current_caller().who, lookup=lookup is None or lookup)
        return json_response(serializers.job(begun))

    @router.post(ONE + "/approve", **errors)
    @requires(OPERATE)
    async def approve(request: Request, id: str) -> Response:
        """Approve the plan."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.approve(id, by=current_caller().who)))

    @router.post(ONE + "/run", **errors)
    @requires(OPERATE)
    async def run(request: Request, id: str) -> Response:
        """Run the approved plan, or everything if there is no plan. A finished job starts again."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.run(id, by=current_caller().who)))

    @router.post(ONE + "/pause", **action_options(REASON))
    @requires(OPERATE)
    async def pause(request: Request, id: str) -> Response:
        """Pause a job. Nothing new is read or written until it is resumed."""
        reason = await read_reason(request, "by hand")
        return json_response(serializers.job(await migrations.pause(id, by=current_caller().who, reason=reason)))

    @router.post(ONE + "/resume", **errors)
    @requires(OPERATE)
    async def resume(request: Request, id: str) -> Response:
        """Resume a paused job."""
        await read_fields(request, {})
        return json_response(serializers.job(await migrations.resume(id, by=current_caller().who)))

    @router.post(ONE + "/cancel", **action_options(REASON))
    @requires(OPERATE)
    async def cancel(request: Request, id: str) -> Response:
        """Cancel a job. Written records stay."""
        reason = await read_reason(request, "by hand")
        return json_response(serializers.job(await migrations.cancel(id, by=current_caller().who, reason=reason)))

    @router.post(ONE + "/verify", **content_options(NDJSON, errors=NOT_FOUND | CONFLICT))
    @requires(OPERATE)
    async def verify(request: Request, id: str) -> Response:
        """Compare source and target: one line per difference, the report last."""
        await read_fields(request, {})
        await migrations.find(id)
        return StreamingResponse(stream_verification(migrations, id), media_type=NDJSON)

    @router.post(
        ONE + "/undo",
        openapi_extra=body_schema(DRY_RUN, required=False),
        **content_options(NDJSON, errors=NOT_FOUND | CONFLICT),
    )
    @requires(OPERATE)
    async def undo(request: Request, id: str) -> Response:
        """Delete from the target what the job created: one line per record, the counts last."""
        dry_run = bool((await read_fields(request, DRY_RUN)).get("dry_run"))
        await migrations.check_undo(id)
        lines = stream_undo(migrations, id, by=current_caller().who, dry_run=dry_run)
        return StreamingResponse(lines, media_type=NDJSON)


def _record_routes(router: APIRouter, migrations: MigrationService) -> None:
    @router.get(ONE + "/records", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def records(
        id: str, *, type: OfType = None, state: State = None, limit: int = 100, after: After = None
    ) -> Response:
        """List records with their state and reason, in the order in which they were read."""
        wanted, size = parse_choice(RecordState, "state", state), page_size(limit)
        found = await migrations.records(id, type=type, state=wanted, after=_after(after), limit=size)
        return json_response(_page(found, size))

    @router.get(ONE + "/batches", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def batches(id: str, *, state: State = None, limit: int = 100, after: After = None) -> Response:
        """List the batches of the current run with state, attempt and reason, newest first."""
        wanted, size = parse_choice(BatchState, "state", state), page_size(limit)
        found = await migrations.batches(id, state=wanted, before=after, limit=size)
        more = found[-1]["id"] if len(found) == size else None
        return json_response({"items": [serializers.batch(one) for one in found], "next": more})

    @router.get(ONE + "/records/{type}/{source_id:path}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def record(id: str, type: str, source_id: str) -> Response:
        """Show one record: the source data and every attempt."""
        found = await migrations.record(id, type, source_id)
        return json_response(serializers.record(found, await migrations.find(id)))

    @router.get(ONE + "/crosswalk/{type}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def crosswalk(
        id: str,
        type: str,
        *,
        source_id: Annotated[str | None, Query(description="Id in the source.")] = None,
        target_id: Annotated[str | None, Query(description="Or id in the target.")] = None,
    ) -> Response:
        """Look up the target record of a source record, or the reverse."""
        found = await migrations.crosswalk(id, type, source_id=source_id, target_id=target_id)
        return json_response({"items": [serializers.row(one) for one in found]})


def _repair_routes(router: APIRouter, migrations: MigrationService, most: int) -> None:
    errors: dict[str, Any] = {"responses": NOT_FOUND | CONFLICT}

    @router.get(ONE + "/dead", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def dead(id: str) -> Response:
        """Count quarantined records by cause, most frequent first."""
        return json_response({"items": [serializers.cause(one) for one in await migrations.dead(id)]})

    @router.get(ONE + "/dead/export", dependencies=STRICT_QUERY, **content_options(NDJSON, CSV, errors=NOT_FOUND))
    @requires(OPERATE)
    async def export(
        id: str,
        *,
        format: Annotated[
            str, Query(description="ndjson, csv (safe for spreadsheets) or csv-exact (unchanged).")
        ] = "ndjson",
        cause: OfCause = None,
        type: OfType = None,
    ) -> Response:
        """Export the quarantined records as the source has them, to be repaired and uploaded."""
        if format not in FORMS:
            remedy = f"use one of: {', '.join(FORMS)}"
            raise Invalid(f"unknown format {format[:40]!r}", field="format", remedy=remedy)
        await migrations.find(id)
        name = f"quarantined.{'ndjson' if format == 'ndjson' else 'csv'}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        kind = NDJSON if format == "ndjson" else "text/csv; charset=utf-8"
        pieces = export_records(migrations, id, form=format, cause=cause, type_=type)
        return StreamingResponse(pieces, 200, headers, media_type=kind)

    @router.post(ONE + "/replay", **action_options(WHICH))
    @requires(OPERATE)
    async def replay(request: Request, id: str) -> Response:
        """Reopen quarantined records."""
        which = await read_fields(request, WHICH)
        opened = await migrations.replay(
            id, by=current_caller().who, fingerprint=which.get("cause"), type=which.get("type")
        )
        return json_response({"id": id, "opened": opened})

    @router.post(REPAIRED, openapi_extra=UPLOAD, **errors)
    @requires(OPERATE)
    async def upload_repaired(request: Request, id: str) -> Response:
        """Upload repaired records in the export format, and reopen them."""
        reject_oversized_upload(request)
        form = upload_format(request.headers.get("content-type", ""))
        await migrations.find(id)
        async with read_repaired(request.stream(), form, most=most) as records:
            opened = await migrations.replay(id, by=current_caller().who, repaired=records)
        return json_response({"id": id, "opened": opened})


def _own_job(raw: Any) -> MigrationJob:
    """Read a job of the caller's own tenant; it cannot name code to run."""
    tenant = current_caller().tenant
    if isinstance(raw, dict):
        raw = {"tenant": tenant, **raw}
    job = read_job(raw)
    if job.tenant != tenant:
        raise Invalid(f"tenant is {job.tenant!r}, but your key belongs to {tenant!r}", field="tenant", remedy="omit it")
    return job


def _page(found: list[dict[str, Any]], size: int) -> dict[str, Any]:
    more = str(found[-1]["seq"]) if len(found) == size else None
    return {"items": [serializers.row(one) for one in found], "next": more}


def _after(after: str | None) -> int:
    return 0 if after is None else min(decode_position(after), NEWEST)
