"""Migrations with live progress, and the page of one with its quarantined records and actions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE
from ...inputs.pagination import decode_position
from ...migration import dead_letter_files, serializers
from ...migration.job_file_section import parse_choice
from ...migration.jobs import JobState
from ...migration.record_states import RecordState
from ...model.errors import Invalid, TidingsError
from ...outbound.contacts.uploads import read_rows
from ..forms import Form, query_values
from ..live_updates import Fragments
from ..renderer import Views, get, post
from ..responses import redirect, redirect_on_error, unknown_action

PAGE = 30
RECORDS = 50
BATCHES = 20  # that are not completed
MAX_PASTED_ROWS = 10_000
UNDO_PREVIEW_RECORDS = 200
UNDO_WAIT = 5.0  # seconds after which the page no longer waits for the end


class MigrationViews(Views):
    _undoing: ClassVar[set[asyncio.Task[str]]] = set()  # undos that outlast their request

    @get("/migrations")
    async def page(self, request: Request) -> Response:
        """List jobs, newest first."""
        asked = query_values(request, "state", "after")
        state = parse_choice(JobState, "state", asked.get("state"))
        before = decode_position(asked["after"]) if "after" in asked else None
        found = await self._app.migrations.page(state=state, before=before, limit=PAGE)
        more = urlencode({**asked, "after": found[-1].n}) if len(found) == PAGE else None
        rows = await self._rows(found, is_filtered=bool(asked))
        return self._renderer.page(
            "migrations.html", rows=rows, chosen=asked, more=more, states=[str(one) for one in JobState]
        )

    @get("/migrations/live")
    async def live_page(self, request: Request) -> Response:
        async def render() -> Fragments:
            return {"migrations": await self._rows(await self._app.migrations.page(limit=PAGE))}

        return await self._renderer.answer_live(request, render)

    @get("/migrations/{id}")
    async def show(self, request: Request, id_: str) -> Response:
        """Show one job: progress, quarantined records by cause, records, plan and audit log."""
        asked = query_values(request, "type", "state", "after", "problem", "done", "undo")
        fragments, job = await self._render(id_), await self._app.migrations.status(id_)
        found = await self._app.migrations.records(
            id_,
            type=asked.get("type"),
            state=parse_choice(RecordState, "state", asked.get("state")),
            after=decode_position(asked["after"]) if "after" in asked else 0,
            limit=RECORDS,
        )
        which: dict[str, Any] = {name: asked[name] for name in ("type", "state") if name in asked}
        more = urlencode({**which, "after": found[-1]["seq"]}) if len(found) == RECORDS else None
        return self._renderer.page(
            "migration.html",
            job=serializers.status(job),
            fragments=fragments,
            plan=await self._plan(job.job.state, id_),
            records=[serializers.row(one) for one in found],
            states=[str(one) for one in RecordState],
            audit=[serializers.row(one) for one in await self._app.migrations.audit(id_)],
            asked=asked,
            more=more,
        )

    @get("/migrations/{id}/live")
    async def live(self, request: Request, id_: str) -> Response:
        return await self._renderer.answer_live(request, lambda: self._render(id_))

    @get("/migrations/{id}/records/{type}/{source_id:path}")
    async def record(self, request: Request, id_: str, type_: str, source_id: str) -> Response:
        """Show one record: the source record and every attempt."""
        job = await self._app.migrations.find(id_)
        found = serializers.record(await self._app.migrations.record(id_, type_, source_id), job)
        return self._renderer.page("migration_record.html", job=serializers.job(job), record=found)

    @post("/migrations/{id}/{action}", OPERATE)
    async def act(self, request: Request, form: Form, id_: str, action: str) -> Response:
        """Perform an action; if the state does not allow it, show why."""
        with redirect_on_error(f"/migrations/{id_}"):
            if action == "preview-undo":
                preview = urlencode({"undo": await self._undo(id_, dry_run=True)})
                return RedirectResponse(f"/migrations/{id_}?{preview}#undo", 303)
            done = await self._do(action, id_, form)
        return redirect(f"/migrations/{id_}", **({"done": done} if done else {}))

    async def _do(self, action: str, id_: str, form: Form) -> str | None:
        migrations, by = self._app.migrations, current_caller().who
        match action:
            case "plan" | "approve" | "run" | "pause" | "resume" | "cancel":
                await getattr(migrations, action)(id_, by=by)
            case "replay":
                opened = await migrations.replay(id_, by=by, fingerprint=form.get("cause"), type=form.get("type"))
                return f"{opened:,} to retry"
            case "undo":
                await migrations.check_undo(id_)
                undoing = asyncio.create_task(self._undo(id_, dry_run=False))
                self._undoing.add(undoing)
                undoing.add_done_callback(self._undoing.discard)
                done, _ = await asyncio.wait({undoing}, timeout=UNDO_WAIT)
                return f"Undone: {undoing.result()}" if done else "The undo continues; this page shows its progress"
            case "repaired":
                return f"{await self._repair(id_, form.get('rows', '')):,} to retry"
            case _:
                raise unknown_action(action)
        return None

    async def _undo(self, id_: str, *, dry_run: bool) -> str:
        """Undo a job, or preview it for the first records; return the counts by result."""
        counts = await self._app.migrations.undo(
            id_, by=current_caller().who, dry_run=dry_run, tell=lambda _: None, most=UNDO_PREVIEW_RECORDS
        )
        words = ", ".join(f"{n:,} {result}" for result, n in sorted(counts.items())) or "nothing to undo"
        is_part = dry_run and sum(counts.values()) >= UNDO_PREVIEW_RECORDS
        return f"{words} of the first {UNDO_PREVIEW_RECORDS:,} records, and more" if is_part else words

    async def _repair(self, id_: str, text: str) -> int:
        """Retry repaired rows; an invalid row rejects all of them."""
        if not text:
            raise Invalid("there are no rows", field="rows", remedy="paste the repaired rows of the export")

        records = await dead_letter_files.valid_repairs(lambda: _pasted(text.replace("\r\n", "\n")))
        return await self._app.migrations.replay(id_, by=current_caller().who, repaired=records)

    async def _plan(self, state: JobState, id_: str) -> dict[str, Any] | None:
        if state not in (JobState.PLANNED, JobState.APPROVED):
            return None
        try:
            return serializers.plan(await self._app.migrations.plan_report(id_))
        except TidingsError:  # a system is unreachable; show the rest of the page
            return None

    async def _rows(self, found: Any, *, is_filtered: bool = False) -> str:
        items = [serializers.status(await self._app.migrations.summary(one)) for one in found]
        return self._renderer.piece("migrations.html", items=items, is_filtered=is_filtered)

    async def _render(self, id_: str) -> Fragments:
        job, piece = serializers.status(await self._app.migrations.status(id_)), self._renderer.piece
        causes = [serializers.cause(one) for one in await self._app.migrations.dead(id_)]
        open_ = await self._app.migrations.batches(id_, is_open=True, limit=BATCHES)
        batches = [serializers.batch(one) for one in open_]
        return {
            "status": piece("migration_state.html", job=job),
            "actions": piece("migration_actions.html", job=job),
            "types": piece("migration_types.html", job=job),
            "causes": piece("migration_causes.html", job=job, causes=causes),
            "batches": piece("migration_batches.html", job=job, batches=batches),
            "facts": piece("migration_facts.html", job=job),
        }


async def _pasted(text: str) -> AsyncIterator[dead_letter_files.Numbered]:
    """Yield numbered rows of a text: NDJSON if it starts with an object, otherwise CSV."""
    if text.startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, dead_letter_files.row_of(line.encode())
        return

    async def pieces() -> AsyncIterator[bytes]:
        yield text.encode()

    async for row in read_rows(pieces(), "csv", largest=len(text) * 4, most_lines=MAX_PASTED_ROWS, exact=True):
        yield row
