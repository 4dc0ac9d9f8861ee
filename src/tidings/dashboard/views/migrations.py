"""Migrations: a row each with its bar, and the page of one, live: progress, causes, records, buttons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...access.caller import current_caller
from ...access.permissions import OPERATE
from ...inputs.pagination import decode_position
from ...migration import dead_letter_files, serializers
from ...migration.jobs import JobState
from ...migration.record_states import RecordState
from ...migration.service import MigrationService
from ...model.errors import Invalid, TidingsError
from ...outbound.contacts.uploads import read_rows
from ..forms import query_values, read_form
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute, redirect, redirect_on_error, unknown_action

PAGE = 30
RECORDS = 50
MOST_PASTED = 10_000  # rows
FORESEEN = 200  # records that a preview of an undoing looks at


def routes(migrations: MigrationService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _MigrationViews(migrations, frame)
    return [
        ViewRoute("GET", "/migrations", views.page),
        ViewRoute("GET", "/migrations/live", views.live_page),
        ViewRoute("GET", "/migrations/{id}", views.show),
        ViewRoute("GET", "/migrations/{id}/live", views.live),
        ViewRoute("GET", "/migrations/{id}/records/{type}/{source_id:path}", views.record),
        ViewRoute("POST", "/migrations/{id}/{action}", views.act, OPERATE),
    ]


class _MigrationViews:
    def __init__(self, migrations: MigrationService, frame: PageRenderer) -> None:
        self._migrations = migrations
        self._frame = frame

    async def page(self, request: Request) -> Response:
        """Jobs, the newest first, each with its bar."""
        asked = query_values(request, "state", "after")
        state = _word(JobState, asked.get("state"))
        before = decode_position(asked["after"]) if "after" in asked else None
        found = await self._migrations.page(state=state, before=before, limit=PAGE)
        more = urlencode({**asked, "after": found[-1].n}) if len(found) == PAGE else None
        rows = await self._rows(found, is_filtered=bool(asked))
        return self._frame.page(
            "migrations.html", rows=rows, chosen=asked, more=more, states=[str(one) for one in JobState]
        )

    async def live_page(self, request: Request) -> Response:
        """The newest of them, as they move."""

        async def render() -> Fragments:
            return {"migrations": await self._rows(await self._migrations.page(limit=PAGE))}

        return await self._frame.answer_live(request, render)

    async def show(self, request: Request) -> Response:
        """One job: its bars, what was set aside and why, its records, its plan, who did what."""
        id_ = request.path_params["id"]
        asked = query_values(request, "type", "state", "after", "problem", "done", "undo")
        fragments, job = await self._render(id_), await self._migrations.status(id_)
        found = await self._migrations.records(
            id_,
            type=asked.get("type"),
            standing=_word(RecordState, asked.get("state")),
            after=decode_position(asked["after"]) if "after" in asked else 0,
            limit=RECORDS,
        )
        which: dict[str, Any] = {name: asked[name] for name in ("type", "state") if name in asked}
        more = urlencode({**which, "after": found[-1]["seq"]}) if len(found) == RECORDS else None
        return self._frame.page(
            "migration.html",
            job=serializers.status(job),
            fragments=fragments,
            plan=await self._plan(job.job.state, id_),
            records=[serializers.row(one) for one in found],
            states=[str(one) for one in RecordState],
            audit=[serializers.row(one) for one in await self._migrations.audit(id_)],
            asked=asked,
            more=more,
        )

    async def live(self, request: Request) -> Response:
        """The stream of one job's page."""
        return await self._frame.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def record(self, request: Request) -> Response:
        """One record: what the source said, and every attempt at it."""
        id_, type_, source_id = (request.path_params[name] for name in ("id", "type", "source_id"))
        job = await self._migrations.find(id_)
        found = serializers.record(await self._migrations.record(id_, type_, source_id), job)
        return self._frame.page("migration_record.html", job=serializers.job(job), record=found)

    async def act(self, request: Request) -> Response:
        """What a person asks of one job; what its state does not allow is refused and said."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/migrations/{id_}"):
            if request.path_params["action"] == "foresee-undo":
                foreseen = urlencode({"undo": await self._undo(id_, dry_run=True)})
                return RedirectResponse(f"/migrations/{id_}?{foreseen}#undo", 303)
            done = await self._do(request.path_params["action"], id_, await read_form(request))
        return redirect(f"/migrations/{id_}", **({"done": done} if done else {}))

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> str | None:
        migrations, by = self._migrations, current_caller().who
        match action:
            case "plan" | "approve" | "run" | "pause" | "resume" | "cancel":
                await getattr(migrations, action)(id_, by=by)
            case "replay":
                opened = await migrations.replay(
                    id_, by=by, fingerprint=form.get("cause"), type=form.get("type")
                )
                return f"{opened:,} opened again"
            case "undo":
                return f"Undone: {await self._undo(id_, dry_run=False)}"
            case "repaired":
                return f"{await self._repair(id_, form.get('rows', '')):,} opened again"
            case _:
                raise unknown_action(action)
        return None

    async def _undo(self, id_: str, *, dry_run: bool) -> str:
        """How many had which fate; a preview looks at the first ones only."""
        counts = await self._migrations.undo(
            id_, by=current_caller().who, dry_run=dry_run, tell=lambda _: None, most=FORESEEN
        )
        words = ", ".join(f"{n:,} {fate}" for fate, n in sorted(counts.items())) or "nothing to undo"
        is_part = dry_run and sum(counts.values()) >= FORESEEN
        return f"{words} of the {FORESEEN:,} that were looked at, and more" if is_part else words

    async def _repair(self, id_: str, text: str) -> int:
        """Take rows that were pasted; one that is not understood changes nothing."""
        if not text:
            raise Invalid("nothing was pasted", field="rows", remedy="paste the export with its repairs")

        records = await dead_letter_files.valid_repairs(lambda: _pasted(text.replace("\r\n", "\n")))
        return await self._migrations.replay(id_, by=current_caller().who, repaired=records)

    async def _plan(self, state: JobState, id_: str) -> dict[str, Any] | None:
        if state not in (JobState.PLANNED, JobState.APPROVED):
            return None
        try:
            return serializers.plan(await self._migrations.plan_report(id_))
        except TidingsError:  # a system that cannot be asked now; the rest of the page can be shown
            return None

    async def _rows(self, found: Any, *, is_filtered: bool = False) -> str:
        items = [serializers.status(await self._migrations.glance(one)) for one in found]
        return self._frame.piece("migrations.html", items=items, is_filtered=is_filtered)

    async def _render(self, id_: str) -> Fragments:
        job, piece = serializers.status(await self._migrations.status(id_)), self._frame.piece
        causes = [serializers.cause(one) for one in await self._migrations.dead(id_)]
        return {
            "standing": piece("migration_standing.html", job=job),
            "acts": piece("migration_acts.html", job=job),
            "types": piece("migration_types.html", job=job),
            "causes": piece("migration_causes.html", job=job, causes=causes),
            "facts": piece("migration_facts.html", job=job),
        }


async def _pasted(text: str) -> AsyncIterator[dead_letter_files.Numbered]:
    """Numbered rows of a text: NDJSON where it begins with an object, otherwise CSV."""
    if text.startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, dead_letter_files.row_of(line.encode())
        return

    async def pieces() -> AsyncIterator[bytes]:
        yield text.encode()

    async for row in read_rows(pieces(), "csv", largest=len(text) * 4, most_lines=MOST_PASTED, exact=True):
        yield row


def _word(words: Any, given: str | None) -> Any:
    if given is not None and given not in list(words):
        raise Invalid(
            f"there is no state {given[:40]!r}", field="state", remedy=f"use one of: {', '.join(words)}"
        )
    return None if given is None else words(given)
