"""`tidings migrate` for records: their log, what was set aside and why, its export, repair and replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import engine, files, migration_progress, output
from .commands import CommandContext, command
from .help import examples
from .migrate import Detach, Id, OfCause, OfType, group
from .options import After, ConfigFile, Database, Limit, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..app import App
    from ..migration.job_undo import UndoneRecord

GROUP = group


@command(GROUP, epilog=examples("tidings migrate records ID --state rejected"))
async def records(
    ask: CommandContext,
    job: Id,
    *,
    type_: OfType = None,
    state: Annotated[str | None, option("--state", "NAME", "written, unchanged, rejected, failed …")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Records with where they stand and why, in the order in which they were read."""
    from ..inputs.pagination import decode_position, page_size
    from ..migration import serializers
    from ..migration.connectors.port import RecordState

    standing = None if state is None else migration_progress.parse_choice(RecordState, "state", state)
    begin, size = 0 if after is None else decode_position(after), page_size(limit)
    found = await ask.app.migrations.records(job, type=type_, standing=standing, after=begin, limit=size)
    columns = [
        Column("type", lambda row: row["type"]),
        Column("record", lambda row: row["source_id"], keep=True),
        Column("state", lambda row: row["state"], migration_progress.state),
        Column("target", lambda row: row["target_id"], spare=True),
        Column("changed", lambda row: row["changed_at"], spare=True),
        *Column.plain("field", "reason"),
    ]
    more = str(found[-1]["seq"]) if len(found) == size else None
    ask.listing([serializers.row(one) for one in found], columns, more=more, nothing="no records")


@command(GROUP, epilog=examples("tidings migrate log ID people 4711"))
async def log(
    ask: CommandContext,
    job: Id,
    type_: Annotated[str, argument("TYPE", "Its record type.")],
    record: Annotated[str, argument("RECORD", "Its id in the source.")],
) -> None:
    """One record: what the source said, and every attempt at it."""
    from ..migration import serializers

    found = await ask.app.migrations.record(job, type_, record)
    row = serializers.record(found, await ask.app.migrations.find(job))
    if ask.as_json:
        output.say_json(row)
        return
    names = ("type", "source_id", "state", "key", "target_id", "action", "failure", "field", "reason", "raw")
    output.facts([(name.replace("_", " "), row.get(name), None) for name in names])
    columns = [
        *Column.plain("at", "what", "code", "reason"),
    ]
    output.listing(row["log"], columns, as_json=False, nothing="nothing was tried yet")


@command(GROUP, epilog=examples("tidings migrate dead ID"))
async def dead(ask: CommandContext, job: Id) -> None:
    """What was set aside, by cause, the most frequent first."""
    from ..migration import serializers

    columns = [
        Column("count", lambda row: row["count"], right=True),
        Column("type", lambda row: row["type"]),
        Column("state", lambda row: row["standing"]),
        Column("field", lambda row: row["field"]),
        Column("example", lambda row: row["example"], spare=True),
        Column("cause", lambda row: row["fingerprint"], keep=True),
        Column("reason", lambda row: row["reason"]),
    ]
    found = [serializers.cause(one) for one in await ask.app.migrations.dead(job)]
    ask.listing(found, columns, nothing="nothing was set aside")


@GROUP.command(
    epilog=examples(
        "tidings migrate export ID -o bad.csv", "tidings migrate export ID --type people > bad.ndjson"
    )
)
def export(
    job: Id,
    *,
    cause: OfCause = None,
    type_: OfType = None,
    form: Annotated[
        str | None, option("--form", "ndjson|csv|csv-exact", "Without it as the file is called.")
    ] = None,
    output_file: Annotated[Path | None, option("--output", "-o", "FILE", "Write it there.")] = None,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """The records that were set aside, as the source has them: mend them and give them to `replay --file`."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            await app.migrations.find(job)
            await _write(app, job, cause, type_, _form(form, output_file), output_file)

    engine.run(work())


def _form(given: str | None, file: Path | None) -> str:
    from ..api.migration_repairs import FORMS
    from ..model.errors import Invalid

    by_name = "csv" if file is not None and file.suffix.lower() == ".csv" else "ndjson"
    if given is not None and given not in FORMS:
        raise Invalid(f"there is no form {given!r}", field="form", remedy=f"use one of: {', '.join(FORMS)}")
    return given or by_name


async def _write(
    app: App, job: str, cause: str | None, type_: str | None, form: str, file: Path | None
) -> None:
    from ..api.migration_repairs import export_records

    with files.written(file) as target, output.working("writing", is_shown=file is not None):
        async for piece in export_records(app.migrations, job, form=form, cause=cause, type_=type_):
            target.write(piece)
    if file is not None and output.on_terminal():
        output.say(("✓ ", "green"), f"{file} has what was set aside; mend it and give it to replay --file")


@command(
    GROUP,
    epilog=examples(
        "tidings migrate replay ID --cause validation/people/email/type",
        "tidings migrate replay ID --file bad.csv",
        "tidings migrate replay ID --job crm.toml",
    ),
    fast=True,
)
async def replay(
    ask: CommandContext,
    job: Id,
    *,
    cause: OfCause = None,
    type_: OfType = None,
    file: Annotated[str | None, option("--file", "FILE", "Repaired records, as they were exported.")] = None,
    form: Annotated[str | None, option("--form", "csv|ndjson", "Without it as the file is called.")] = None,
    job_file: Annotated[Path | None, option("--job", "FILE", "The job file with a repaired map.")] = None,
    detach: Detach = False,
) -> int:
    """Open what was set aside again, and only that: as it is, repaired, or under a repaired map."""
    which: dict[str, Any] = {"by": migration_progress.caller_name(), "fingerprint": cause, "type": type_}
    if job_file is not None:
        from ..migration.job_file import read_job_file

        which["job"] = read_job_file(job_file)
    with output.working("opening records again", is_shown=not ask.as_json) as say:
        which["tell"] = lambda opened: say(f"{opened:,} records are open again")
        if file is None:
            opened = await ask.app.migrations.replay(job, **which)
        else:
            opened = await _replay_file(ask, job, file, form, which)
    if detach or not opened:
        ask.answer(
            {"id": job, "opened": opened}, lambda: output.say((job, "bold"), f" {opened:,} opened again")
        )
        return 0
    if not ask.as_json:
        output.say(f"{opened:,} records are opened again")
    row = await migration_progress.follow(ask.app, job, is_quiet=ask.as_json)
    ask.answer({**row, "opened": opened}, lambda: migration_progress.print_result(row))
    return 0 if row["state"] == "completed" else 1


async def _replay_file(
    ask: CommandContext, job: str, name: str, form: str | None, which: dict[str, Any]
) -> int:
    from ..api.migration_repairs import read_repaired
    from . import files

    await ask.app.migrations.find(job)
    read_as, most = files.form_of(name, form), ask.app.settings.max_bulk
    with files.opened(name) as file:
        async with read_repaired(files.pieces(file, lambda _: None), read_as, most=most) as records:
            return await ask.app.migrations.replay(job, repaired=records, **which)


@command(
    GROUP, epilog=examples("tidings migrate undo ID --dry-run", "tidings migrate undo ID --yes"), fast=True
)
async def undo(
    ask: CommandContext,
    job: Id,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken out.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take what a job has created out of the target again, unless somebody has changed it since."""
    from ..migration import serializers
    from ..model.errors import Invalid

    if not dry_run and not yes:
        if not output.on_terminal() or ask.as_json:
            raise Invalid("this would delete records in the target", remedy="add --yes, or --dry-run first")
        typer.confirm("Delete what it has created in the target?", abort=True)
    told: list[dict[str, Any]] = []

    def tell(one: UndoneRecord) -> None:
        if len(told) < 1000:
            told.append(serializers.undone_record(one))

    counts = await ask.app.migrations.undo(
        job, by=migration_progress.caller_name(), dry_run=dry_run, tell=tell
    )
    row = {
        "id": job,
        "dry_run": dry_run,
        "counts": {str(fate): n for fate, n in counts.items()},
        "items": told,
    }
    words = ", ".join(f"{n:,} {fate}" for fate, n in counts.items()) or "nothing to undo"

    def say() -> None:
        output.say((job, "bold"), f" {'would be ' if dry_run else ''}{words}")
        for one in told:
            if dry_run or one["fate"] in ("changed", "unsure"):
                print(f"{one['fate']}\t{one['type']}\t{one['source_id']}\t{one['target_id']}")

    ask.answer(row, say)


@command(GROUP, epilog=examples("tidings migrate crosswalk ID people --source 4711"))
async def crosswalk(
    ask: CommandContext,
    job: Id,
    type_: Annotated[str, argument("TYPE", "A record type.")],
    *,
    source: Annotated[str | None, option("--source", "ID", "By the source's id.")] = None,
    target: Annotated[str | None, option("--target", "ID", "Or by the target's.")] = None,
) -> None:
    """Which record of the target is which of the source."""
    from ..migration import serializers

    columns = [
        Column("source", lambda row: row["source_id"], keep=True),
        Column("target", lambda row: row["target_id"], keep=True),
        Column("changed", lambda row: row["changed_at"]),
        Column("hash", lambda row: row["hash"], spare=True),
    ]
    found = await ask.app.migrations.crosswalk(job, type_, source_id=source, target_id=target)
    ask.listing([serializers.row(one) for one in found], columns, nothing="no such record was moved")


@command(GROUP, epilog=examples("tidings migrate audit ID"))
async def audit(ask: CommandContext, job: Id) -> None:
    """Who did what to a job, and when."""
    from ..migration import serializers

    columns = [
        *Column.plain("at", "actor", "action", "detail"),
    ]
    ask.listing(
        [serializers.row(one) for one in await ask.app.migrations.audit(job)], columns, nothing="nothing yet"
    )
