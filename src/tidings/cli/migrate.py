"""`tidings migrate`: jobs that copy records between systems: plan, approve, run, watch, verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import migration_progress, output
from .commands import CommandContext, command
from .migration_progress import caller_name
from .options import After, Limit, argument, option
from .output import Column, Row

if TYPE_CHECKING:
    from ..migration.job_file import MigrationJob

group = typer.Typer(help="Copy records between systems: plan, run, verify, undo.", no_args_is_help=True)

JobOrFile = Annotated[str, argument("JOB", "Job file or job id.")]
Id = Annotated[str, argument("ID", "Job id.")]
Detach = Annotated[bool, typer.Option("--detach", help="Return immediately instead of waiting for the end.")]
Reason = Annotated[str, option("--reason", "TEXT", "Reason, shown with the job.")]
OfType = Annotated[str | None, option("--type", "NAME", "Filter by record type.")]
_FEW = 20  # differences listed per record type on a terminal
OfCause = Annotated[str | None, option("--cause", "CAUSE", "Filter by cause, as listed by `dead`.")]


@command(group, "tidings migrate create crm.toml")
async def create(ctx: CommandContext, file: Annotated[Path, argument("FILE", "Job file.")]) -> None:
    """Create a job without running it. The same file again is the same job."""
    from ..migration import serializers
    from ..migration.job_file import read_job_file

    row = serializers.job(await ctx.app.migrations.find(await _create(ctx, read_job_file(file))))
    ctx.answer(row, lambda: output.say((row["id"], "bold"), f" {row['state']}: {output.flat(row['name'])}"))


@command(group, "tidings migrate list", "tidings migrate list --state running", name="list")
async def list_(
    ctx: CommandContext,
    *,
    state: Annotated[str | None, option("NAME", "Filter by state.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List jobs, newest first."""
    from ..inputs.pagination import decode_position, page_size
    from ..migration import serializers
    from ..migration.job_file_section import parse_choice
    from ..migration.jobs import JobState

    chosen = parse_choice(JobState, "state", state)
    size = page_size(limit)
    before = None if after is None else decode_position(after)
    found = await ctx.app.migrations.page(state=chosen, before=before, limit=size)
    columns = [
        *Column.plain("id:keep", "state:colored", "changed=changed_at:time", "from=source:spare", "to=target:spare"),
        *Column.plain("tenant:spare", "name"),
    ]
    more = str(found[-1].n) if len(found) == size else None
    ctx.listing([serializers.job(one) for one in found], columns, more=more, nothing="no migrations")


@command(group, "tidings migrate lint crm.toml")
async def lint(ctx: CommandContext, job: JobOrFile) -> int:
    """Check the mapping against both systems. Exit code 1 if there is an error."""
    from ..migration import serializers

    found = [serializers.finding(one) for one in await ctx.app.migrations.lint(await _job(ctx, job))]
    columns = [
        *Column.plain("level", "type", "field", "code:spare"),
        Column("text", lambda row: f"{row['text']}. {row['remedy']}"),
    ]
    ctx.listing(found, columns, nothing="no problems found")
    return int(any(row["level"] == "error" for row in found))


@command(group, "tidings migrate plan crm.toml", "tidings migrate plan ID --no-lookup", fast=True)
async def plan(
    ctx: CommandContext,
    job: JobOrFile,
    *,
    lookup: Annotated[
        bool, typer.Option("--lookup/--no-lookup", help="Look up existing records in the target.")
    ] = True,
    detach: Detach = False,
) -> int:
    """Dry run: read and map all records, and report what a run would write."""
    from ..migration import serializers

    migrations, id_ = ctx.app.migrations, await _job(ctx, job)
    begun = await migrations.plan(id_, by=caller_name(), lookup=lookup)
    if detach:
        _moved(ctx, begun, "planning")
        return 0
    row = await migration_progress.follow(ctx.app, id_, is_quiet=ctx.as_json)
    if row["state"] != "planned":
        _ended(ctx, row)
        return 1
    report = serializers.plan(await migrations.plan_report(id_))
    ctx.answer(report, lambda: _print_plan(report))
    return 0


@command(group, "tidings migrate approve ID")
async def approve(ctx: CommandContext, job: Id) -> None:
    """Approve the plan, so that `run` executes exactly that."""
    _moved(ctx, await ctx.app.migrations.approve(job, by=caller_name()), "approved")


@command(group, "tidings migrate run crm.toml", "tidings migrate run ID --detach", fast=True)
async def run(ctx: CommandContext, job: JobOrFile, *, detach: Detach = False) -> int:
    """Copy the records: the approved plan or, without a plan, all records of the source.

    This process does the work. An interrupted job continues where it stopped. A finished job starts again and
    writes only what has changed. Exit code 1 unless it completes.
    """
    id_ = await _job(ctx, job)
    found = await ctx.app.migrations.find(id_)
    if str(found.state) not in ("planning", "running"):
        found = await ctx.app.migrations.run(id_, by=caller_name())
    if detach:
        _moved(ctx, found, "started")
        return 0
    return _ended(ctx, await migration_progress.follow(ctx.app, id_, is_quiet=ctx.as_json))


@command(group, "tidings migrate status ID --watch", fast=True)
async def status(
    ctx: CommandContext,
    job: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show the progress until it ends.")] = False,
) -> int:
    """Show the progress of a job by record type, its rate and its problems."""
    if watch:
        return _ended(ctx, await migration_progress.follow(ctx.app, job, is_quiet=ctx.as_json, works=False))
    row = await migration_progress.read_status(ctx.app, job)
    ctx.answer(row, lambda: _print_status(ctx, row))
    return 0


@command(group, 'tidings migrate pause ID --reason "the CRM is slow"')
async def pause(ctx: CommandContext, job: Id, *, reason: Reason = "by hand") -> None:
    """Pause a job until it is resumed."""
    _moved(ctx, await ctx.app.migrations.pause(job, by=caller_name(), reason=reason), "paused")


@command(group, "tidings migrate resume ID")
async def resume(ctx: CommandContext, job: Id) -> None:
    """Resume a paused job."""
    _moved(ctx, await ctx.app.migrations.resume(job, by=caller_name()), "resumed")


@command(group, 'tidings migrate cancel ID --reason "wrong mapping"')
async def cancel(ctx: CommandContext, job: Id, *, reason: Reason = "by hand") -> None:
    """Cancel a job. Records that are already written stay."""
    _moved(ctx, await ctx.app.migrations.cancel(job, by=caller_name(), reason=reason), "cancelled")


@command(group, "tidings migrate verify ID", fast=True)
async def verify(ctx: CommandContext, job: Id) -> int:
    """Compare every record of the source with the target. Exit code 1 for unexplained differences."""
    differences = 0
    with output.working("comparing", is_shown=not ctx.as_json) as say:

        def tell(_difference: Any) -> None:
            nonlocal differences
            differences += 1
            if differences % 100 == 1:
                say(f"comparing: {differences:,} differences so far")

        report = await ctx.app.migrations.verify(job, tell=tell)
    ctx.answer(report.plainly(), lambda: print(report.text(most=_FEW if output.on_terminal() else None)))
    return 0 if report.passed else 1


async def _job(ctx: CommandContext, given: str) -> str:
    """Return a job id; for a file, create the job first."""
    from ..migration.job_file import read_job_file

    if given.endswith((".toml", ".yaml", ".yml", ".json")):
        return await _create(ctx, read_job_file(Path(given)))
    return given


async def _create(ctx: CommandContext, job: MigrationJob) -> str:
    """Return the newest job with the same definition that was not cancelled, or create one."""
    for one in await ctx.app.migrations.page(tenant=job.tenant, limit=200):
        if one.is_local and one.definition == job.definition and str(one.state) != "cancelled":
            return one.id
    return (await ctx.app.migrations.create(job, by=caller_name())).id


def _moved(ctx: CommandContext, job: Any, words: str) -> None:
    from ..migration import serializers

    ctx.done(serializers.job(job), words)


def _ended(ctx: CommandContext, row: Row) -> int:
    ctx.answer(row, lambda: migration_progress.print_result(row))
    return 0 if row["state"] == "completed" else 1


def _print_plan(report: Row) -> None:
    names = ("create", "update", "write", "unchanged", "rejected", "skipped", "unresolved", "conflict")
    used = [name for name in names if any(name in found for found in report["actions"].values())]
    rows = [{"type": type_, **found} for type_, found in report["actions"].items()]
    columns = [Column("type", lambda row: row["type"], keep=True)]
    columns += [_number(name) for name in used]
    output.listing(rows, columns, nothing="the source has no records")
    for cause in report["causes"]:
        output.say((f"{cause['count']:,} {cause['type']} {cause['state']}: ", "yellow"), output.flat(cause["reason"]))
    for note in report["notes"]:
        output.say(("note: ", "yellow"), output.flat(note))
    duration = "" if report["length"] is None else f", at least {report['length']}"
    output.say(f"{report['reads']:,} reads and {report['writes']:,} writes of the target{duration}")
    if report["fits_this_month"] is False:
        output.say(("exceeds the remaining quota of this month", "bold red"))
    id_ = report["job"]["id"]
    output.say((f"next: tidings migrate approve {id_} && tidings migrate run {id_}", "dim"))


def _number(name: str) -> Column:
    return Column(name, lambda row: row.get(name, 0), right=True)


def _print_status(ctx: CommandContext, row: Row) -> None:
    timezone, now = ctx.app.settings.timezone, ctx.app.clock.now()
    moves = not migration_progress.is_idle(row)
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], output.state(row)),
            *output.fields(row, "reason"),
            *output.times(row, timezone, now, "resumes=blocked_until"),
            *output.fields(row, "problem"),
            ("undo", row["undo"], migration_progress.undo_words(row["undo"])),
            ("read", row["read"], f"{row['read']:,} of {row['expected']:,}"),
            ("done", row["done"], migration_progress.tally(row)),
            ("rate", row["per_second"], f"{row['per_second']:,.1f} per second" if moves else ""),
            ("left", row["seconds_left"], row["left"] or ""),
            *output.times(row, timezone, now, "started=started_at", "ended=ended_at", "records pruned=pruned_at"),
            ("batches", row["batches"], ", ".join(f"{n:,} {word}" for word, n in row["batches"].items())),
            ("actions", ", ".join(row["actions"]), None),
        ]
    )
    columns = [
        *Column.plain("type:keep", "read:right", "done:right", "quarantined:right"),
        Column(
            "states", lambda row: row["counts"], lambda row: ", ".join(f"{n:,} {w}" for w, n in row["counts"].items())
        ),
        *Column.plain("note"),
    ]
    if output.on_terminal():
        output.say()
    output.listing(row["types"], columns, nothing="no records read yet")
