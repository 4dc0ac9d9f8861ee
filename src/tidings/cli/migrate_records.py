"""`tidings migrate` for records and batches: list, log, dead letters, export, replay, undo, crosswalk, audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, files, migration_progress, output
from .commands import CommandContext, command
from .help import examples
from .migrate import Detach, Id, OfCause, OfType, group
from .options import After, ConfigFile, Database, DryRun, InputFormat, Limit, Yes, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..app import App
    from ..migration.job_undo import UndoneRecord

GROUP = group


@command(GROUP, "tidings migrate records ID --state rejected")
async def records(
    ctx: CommandContext,
    job: Id,
    *,
    type_: OfType = None,
    state: Annotated[str | None, option("NAME", "Filter by state: written, unchanged, rejected, failed …")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List records with their state and reason, in the order they were read."""
    from ..inputs.pagination import decode_position, page_size
    from ..migration import serializers
    from ..migration.job_file_section import parse_choice
    from ..migration.record_states import RecordState

    chosen = parse_choice(RecordState, "state", state)
    begin, size = 0 if after is None else decode_position(after), page_size(limit)
    found = await ctx.app.migrations.records(job, type=type_, state=chosen, after=begin, limit=size)
    columns = [
        *Column.plain("type", "record=source_id:keep", "state:colored", "target=target_id:spare"),
        *Column.plain("changed=changed_at:spare", "field", "reason"),
    ]
    more = str(found[-1]["seq"]) if len(found) == size else None
    ctx.listing([serializers.row(one) for one in found], columns, more=more, nothing="no records")


@command(GROUP, "tidings migrate batches ID --state failed")
async def batches(
    ctx: CommandContext,
    job: Id,
    *,
    state: Annotated[str | None, option("NAME", "Filter by state: pending, processing, failed, retrying …")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List the batches of the current run with their state, newest first."""
    from ..inputs.pagination import page_size
    from ..migration import serializers
    from ..migration.job_file_section import parse_choice
    from ..migration.jobs import BatchState

    chosen = parse_choice(BatchState, "state", state)
    found = await ctx.app.migrations.batches(job, state=chosen, before=after, limit=page_size(limit))
    columns = [
        *Column.plain("batch=id:keep", "type", "state", "attempt", "size", "written", "unchanged", "seconds"),
        *Column.plain("phase:spare", "changed=changed_at:spare", "reason"),
    ]
    more = found[-1]["id"] if len(found) == page_size(limit) else None
    ctx.listing([serializers.batch(one) for one in found], columns, more=more, nothing="no batches")


@command(GROUP, "tidings migrate log ID people 4711")
async def log(
    ctx: CommandContext,
    job: Id,
    type_: Annotated[str, argument("TYPE", "Record type.")],
    record: Annotated[str, argument("RECORD", "Record id in the source.")],
) -> None:
    """Show a record: its source data and every attempt to write it."""
    from ..migration import serializers

    found = await ctx.app.migrations.record(job, type_, record)
    row = serializers.record(found, await ctx.app.migrations.find(job))
    if ctx.as_json:
        output.say_json(row)
        return
    names = ("type", "source_id", "state", "key", "target_id", "action", "failure", "field", "reason", "raw")
    output.facts([(name.replace("_", " "), row.get(name), None) for name in names])
    columns = Column.plain("at", "what", "code", "reason")
    output.listing(row["log"], columns, nothing="no attempts yet")


@command(GROUP, "tidings migrate dead ID")
async def dead(ctx: CommandContext, job: Id) -> None:
    """Count quarantined records by cause, most frequent first."""
    from ..migration import serializers

    columns = Column.plain("count:right", "type", "state", "field", "example:spare", "cause=fingerprint:keep", "reason")
    found = [serializers.cause(one) for one in await ctx.app.migrations.dead(job)]
    ctx.listing(found, columns, nothing="no quarantined records")


@GROUP.command(
    epilog=examples("tidings migrate export ID -o bad.csv", "tidings migrate export ID --type people > bad.ndjson")
)
def export(
    job: Id,
    *,
    cause: OfCause = None,
    type_: OfType = None,
    format_: Annotated[
        str | None, option("--format", "ndjson|csv|csv-exact", "Output format. [from the file name]")
    ] = None,
    output_file: Annotated[Path | None, option("--output", "-o", "FILE", "Write to FILE. [stdout]")] = None,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Export the quarantined records. Fix them and pass the file to `replay --file`."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            await app.migrations.find(job)
            await _write(app, job, cause, type_, _format(format_, output_file), output_file)

    engine.run(work())


def _format(given: str | None, file: Path | None) -> str:
    from ..api.migration_repairs import FORMS
    from ..model.errors import Invalid

    by_name = "csv" if file is not None and file.suffix.lower() == ".csv" else "ndjson"
    if given is not None and given not in FORMS:
        raise Invalid(f"unknown format {given!r}", field="format", remedy=f"use one of: {', '.join(FORMS)}")
    return given or by_name


async def _write(app: App, job: str, cause: str | None, type_: str | None, format_: str, file: Path | None) -> None:
    from ..api.migration_repairs import export_records

    with files.written(file) as target, output.working("writing", is_shown=file is not None):
        async for piece in export_records(app.migrations, job, form=format_, cause=cause, type_=type_):
            target.write(piece)
    if file is not None and output.on_terminal():
        output.say(("✓ ", "green"), f"wrote {file}; fix the records and pass it to replay --file")


@command(
    GROUP,
    "tidings migrate replay ID --cause validation/people/email/type",
    "tidings migrate replay ID --file bad.csv",
    "tidings migrate replay ID --job crm.toml",
    fast=True,
)
async def replay(
    ctx: CommandContext,
    job: Id,
    *,
    cause: OfCause = None,
    type_: OfType = None,
    file: Annotated[
        str | None, option("FILE", "Fixed records, in the exported format. [all quarantined records]")
    ] = None,
    format_: InputFormat = None,
    job_file: Annotated[Path | None, option("--job", "FILE", "Job file with a fixed mapping.")] = None,
    detach: Detach = False,
) -> int:
    """Process the quarantined records again: unchanged, fixed, or with a fixed mapping."""
    which: dict[str, Any] = {"by": migration_progress.caller_name(), "fingerprint": cause, "type": type_}
    if job_file is not None:
        from ..migration.job_file import read_job_file

        which["job"] = read_job_file(job_file)
    with output.working("reopening records", is_shown=not ctx.as_json) as say:
        which["tell"] = lambda opened: say(f"{opened:,} records reopened")
        if file is None:
            opened = await ctx.app.migrations.replay(job, **which)
        else:
            opened = await _replay_file(ctx, job, file, format_, which)
    if detach or not opened:
        ctx.answer({"id": job, "opened": opened}, lambda: output.say((job, "bold"), f" {opened:,} records reopened"))
        return 0
    if not ctx.as_json:
        output.say(f"{opened:,} records reopened")
    row = await migration_progress.follow(ctx.app, job, is_quiet=ctx.as_json)
    ctx.answer({**row, "opened": opened}, lambda: migration_progress.print_result(row))
    return 0 if row["state"] == "completed" else 1


async def _replay_file(ctx: CommandContext, job: str, name: str, format_: str | None, which: dict[str, Any]) -> int:
    from ..api.migration_repairs import read_repaired

    await ctx.app.migrations.find(job)
    read_as, most = files.format_of(name, format_), ctx.app.settings.max_bulk
    with files.opened(name) as file:
        async with read_repaired(files.pieces(file, lambda _: None), read_as, most=most) as records:
            return await ctx.app.migrations.replay(job, repaired=records, **which)


@command(GROUP, "tidings migrate undo ID --dry-run", "tidings migrate undo ID --yes", fast=True)
async def undo(ctx: CommandContext, job: Id, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Delete the records that a finished job created in the target, except those changed since."""
    from ..migration import serializers
    from ..model.errors import Invalid

    if not dry_run and not yes:
        if not output.on_terminal() or ctx.as_json:
            raise Invalid("this would delete records in the target", remedy="add --yes, or --dry-run first")
        typer.confirm("Delete the records that this job created in the target?", abort=True)
    undone: list[dict[str, Any]] = []
    done, total = 0, (await migration_progress.read_status(ctx.app, job))["counts"].get("written", 0)
    with migration_progress.counting("checking" if dry_run else "undoing", total, is_shown=not ctx.as_json) as count:

        def tell(one: UndoneRecord) -> None:
            nonlocal done
            count(done := done + 1)
            if len(undone) < 1000:
                undone.append(serializers.undone_record(one))

        counts = await ctx.app.migrations.undo(job, by=migration_progress.caller_name(), dry_run=dry_run, tell=tell)
    row = {"id": job, "dry_run": dry_run, "counts": {str(result): n for result, n in counts.items()}, "items": undone}
    words = ", ".join(f"{n:,} {result}" for result, n in counts.items()) or "nothing to undo"

    def say() -> None:
        output.say((job, "bold"), f" {'would be ' if dry_run else ''}{words}")
        for one in undone:
            if dry_run or one["result"] in ("changed", "unsure"):
                print(f"{one['result']}\t{one['type']}\t{one['source_id']}\t{one['target_id']}")

    ctx.answer(row, say)


@command(GROUP, "tidings migrate crosswalk ID people --source 4711")
async def crosswalk(
    ctx: CommandContext,
    job: Id,
    type_: Annotated[str, argument("TYPE", "Record type.")],
    *,
    source: Annotated[str | None, option("ID", "Record id in the source.")] = None,
    target: Annotated[str | None, option("ID", "Record id in the target.")] = None,
) -> None:
    """Look up which record of the source is which of the target."""
    from ..migration import serializers

    columns = Column.plain("source=source_id:keep", "target=target_id:keep", "changed=changed_at", "hash:spare")
    found = await ctx.app.migrations.crosswalk(job, type_, source_id=source, target_id=target)
    ctx.listing([serializers.row(one) for one in found], columns, nothing="no matching record")


@command(GROUP, "tidings migrate audit ID")
async def audit(ctx: CommandContext, job: Id) -> None:
    """List the changes of a job: actor, action and time."""
    from ..migration import serializers

    columns = Column.plain("at", "actor", "action", "detail")
    ctx.listing([serializers.row(one) for one in await ctx.app.migrations.audit(job)], columns, nothing="nothing yet")
