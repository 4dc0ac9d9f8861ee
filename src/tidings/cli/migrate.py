"""`tidings migrate`: move records between systems; planned, approved, run, watched, repaired and verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import migration_progress, output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column, Row

if TYPE_CHECKING:
    from ..migration.job_file import MigrationJob

group = typer.Typer(help="Migrations: move records between systems.", no_args_is_help=True)

JobOrFile = Annotated[str, argument("JOB", "A job file, or the id of a job.")]
Id = Annotated[str, argument("ID", "The job's id.")]
Detach = Annotated[bool, typer.Option("--detach", help="Do not stay until it is over.")]
Reason = Annotated[str, option("--reason", "TEXT", "Shown with it.")]
OfType = Annotated[str | None, option("--type", "NAME", "Only of this record type.")]
_FEW = 20  # differences of a type that are listed on a terminal
OfCause = Annotated[str | None, option("--cause", "CAUSE", "Only of this cause, as `dead` names it.")]


@command(group, epilog=examples("tidings migrate create crm.toml"))
async def create(
    ask: CommandContext,
    file: Annotated[Path, argument("FILE", "A job file.")],
) -> None:
    """Keep a job; nothing runs yet. The same file again is the same job."""
    from ..migration import serializers
    from ..migration.job_file import read_job_file

    row = serializers.job(await ask.app.migrations.find(await _kept(ask, read_job_file(file))))
    ask.answer(row, lambda: output.say((row["id"], "bold"), f" {row['state']}: {output.flat(row['name'])}"))


@command(group, "list", epilog=examples("tidings migrate list", "tidings migrate list --state running"))
async def list_(
    ask: CommandContext,
    *,
    state: Annotated[str | None, option("--state", "NAME", "Only in this state.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Jobs, newest first."""
    from ..inputs.pagination import decode_position, page_size
    from ..migration import serializers
    from ..migration.jobs import JobState

    chosen, size = (
        None if state is None else migration_progress.parse_choice(JobState, "state", state),
        page_size(limit),
    )
    before = None if after is None else decode_position(after)
    found = await ask.app.migrations.page(state=chosen, before=before, limit=size)
    now = ask.app.clock.now()
    columns = [
        Column("id", lambda row: row["id"], keep=True),
        Column("state", lambda row: row["state"], migration_progress.state),
        Column.time("changed", "changed_at", now),
        Column("from", lambda row: row["source"], spare=True),
        Column("to", lambda row: row["target"], spare=True),
        Column("tenant", lambda row: row["tenant"], spare=True),
        Column("name", lambda row: row["name"]),
    ]
    more = str(found[-1].n) if len(found) == size else None
    ask.listing([serializers.job(one) for one in found], columns, more=more, nothing="no migrations")


@command(group, epilog=examples("tidings migrate lint crm.toml"))
async def lint(ask: CommandContext, job: JobOrFile) -> int:
    """Compare the map with both systems: what would be lost or refused. Exit code 1 if there is an error."""
    from ..migration import serializers

    found = [serializers.finding(one) for one in await ask.app.migrations.lint(await _job(ask, job))]
    columns = [
        *Column.plain("level", "type", "field"),
        Column("code", lambda row: row["code"], spare=True),
        Column("text", lambda row: f"{row['text']}. {row['remedy']}"),
    ]
    ask.listing(found, columns, nothing="the map fits both systems")
    return int(any(row["level"] == "error" for row in found))


@command(
    group, epilog=examples("tidings migrate plan crm.toml", "tidings migrate plan ID --no-look"), fast=True
)
async def plan(
    ask: CommandContext,
    job: JobOrFile,
    *,
    look: Annotated[
        bool, typer.Option("--look/--no-look", help="CommandContext the target what is there already.")
    ] = True,
    detach: Detach = False,
) -> int:
    """A dry run: read and map everything, write nothing, and say what a run would do."""
    from ..migration import serializers

    migrations, id_ = ask.app.migrations, await _job(ask, job)
    begun = serializers.job(await migrations.plan(id_, by=migration_progress.caller_name(), look=look))
    if detach:
        _moved(ask, begun, "is being planned")
        return 0
    row = await migration_progress.follow(ask.app, id_, is_quiet=ask.as_json)
    if row["state"] != "planned":
        _ended(ask, row)
        return 1
    report = serializers.plan(await migrations.plan_report(id_))
    ask.answer(report, lambda: _print_plan(report))
    return 0


@command(group, epilog=examples("tidings migrate approve ID"))
async def approve(ask: CommandContext, job: Id) -> None:
    """The plan may be run; `run` then does exactly that."""
    _moved(
        ask, _shown(await ask.app.migrations.approve(job, by=migration_progress.caller_name())), "is approved"
    )


@command(
    group,
    epilog=examples("tidings migrate run crm.toml", "tidings migrate run ID --detach"),
    fast=True,
)
async def run(ask: CommandContext, job: JobOrFile, *, detach: Detach = False) -> int:
    """Move the records: the approved plan exactly, or everything that the source has.

    This process works at it until it ends; stopped and run again, it goes on where it was.
    A job that is over begins again, and only what has changed is written.
    """
    id_ = await _job(ask, job)
    found = await ask.app.migrations.find(id_)
    if str(found.state) not in ("planning", "running"):
        found = await ask.app.migrations.run(id_, by=migration_progress.caller_name())
    if detach:
        _moved(ask, _shown(found), "runs")
        return 0
    return _ended(ask, await migration_progress.follow(ask.app, id_, is_quiet=ask.as_json))


@command(group, epilog=examples("tidings migrate status ID --watch"), fast=True)
async def status(
    ask: CommandContext,
    job: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Stay until it is over.")] = False,
) -> int:
    """How far it is, by record type; its rate, what is left, what holds it up."""
    if watch:
        return _ended(ask, await migration_progress.follow(ask.app, job, is_quiet=ask.as_json, works=False))
    row = await migration_progress.look(ask.app, job)
    ask.answer(row, lambda: _print_status(ask, row))
    return 0


@command(group, epilog=examples('tidings migrate pause ID --reason "the CRM is slow"'))
async def pause(ask: CommandContext, job: Id, *, reason: Reason = "by hand") -> None:
    """Read and write nothing new until it is resumed."""
    _moved(
        ask,
        _shown(await ask.app.migrations.pause(job, by=migration_progress.caller_name(), reason=reason)),
        "is paused",
    )


@command(group, epilog=examples("tidings migrate resume ID"))
async def resume(ask: CommandContext, job: Id) -> None:
    """Go on."""
    _moved(ask, _shown(await ask.app.migrations.resume(job, by=migration_progress.caller_name())), "goes on")


@command(group, epilog=examples('tidings migrate cancel ID --reason "wrong mapping"'))
async def cancel(ask: CommandContext, job: Id, *, reason: Reason = "by hand") -> None:
    """Stop for good; what is written stays."""
    _moved(
        ask,
        _shown(await ask.app.migrations.cancel(job, by=migration_progress.caller_name(), reason=reason)),
        "is cancelled",
    )


@command(group, epilog=examples("tidings migrate verify ID"), fast=True)
async def verify(ask: CommandContext, job: Id) -> int:
    """Every record of the source against the target. Exit code 1 if something is unexplained."""
    told = 0
    with output.working("comparing", is_shown=not ask.as_json) as say:

        def tell(_difference: Any) -> None:
            nonlocal told
            told += 1
            if told % 100 == 1:
                say(f"comparing: {told:,} differences so far")

        report = await ask.app.migrations.verify(job, tell=tell)
    ask.answer(report.plainly(), lambda: print(report.text(most=_FEW if output.on_terminal() else None)))
    return 0 if report.passed else 1


async def _job(ask: CommandContext, given: str) -> str:
    """The id of a job; a file's job is kept first."""
    from ..migration.job_file import read_job_file

    if given.endswith((".toml", ".yaml", ".yml", ".json")):
        return await _kept(ask, read_job_file(Path(given)))
    return given


async def _kept(ask: CommandContext, job: MigrationJob) -> str:
    """The newest job that says the same and was not cancelled, or a new one."""
    for one in await ask.app.migrations.page(tenant=job.tenant, limit=200):
        if one.is_local and one.definition == job.definition and str(one.state) != "cancelled":
            return one.id
    return (await ask.app.migrations.create(job, by=migration_progress.caller_name())).id


def _shown(found: Any) -> Row:
    from ..migration import serializers

    return serializers.job(found)


def _moved(ask: CommandContext, row: Row, words: str) -> None:
    ask.answer(row, lambda: output.say((row["id"], "bold"), f" {words}"))


def _ended(ask: CommandContext, row: Row) -> int:
    ask.answer(row, lambda: migration_progress.print_result(row))
    return 0 if row["state"] == "completed" else 1


def _print_plan(report: Row) -> None:
    names = ("create", "update", "write", "unchanged", "rejected", "skipped", "unresolved", "conflict")
    used = [name for name in names if any(name in found for found in report["actions"].values())]
    rows = [{"type": type_, **found} for type_, found in report["actions"].items()]
    columns = [Column("type", lambda row: row["type"], keep=True)]
    columns += [_number(name) for name in used]
    output.listing(rows, columns, as_json=False, nothing="the source has no records")
    for cause in report["causes"]:
        output.say(
            (f"{cause['count']:,} {cause['type']} {cause['standing']}: ", "yellow"),
            output.flat(cause["reason"]),
        )
    for note in report["notes"]:
        output.say(("note: ", "yellow"), output.flat(note))
    length = (
        ""
        if report["seconds"] is None
        else f", at least {migration_progress.format_duration(report['seconds'])}"
    )
    output.say(f"{report['calls']:,} call{'' if report['calls'] == 1 else 's'}{length}")
    if report["fits_this_month"] is False:
        output.say(("this will not fit into what is left of this month", "bold red"))
    id_ = report["job"]["id"]
    output.say((f"then: tidings migrate approve {id_} && tidings migrate run {id_}", "dim"))


def _number(name: str) -> Column:
    return Column(name, lambda row: row.get(name, 0), right=True)


def _print_status(ask: CommandContext, row: Row) -> None:
    timezone, now = ask.app.settings.timezone, ask.app.clock.now()
    moves, more = not migration_progress.is_idle(row), row["seconds_left"] is not None
    output.facts(
        [
            *output.fields(row, "id", "name"),
            ("state", row["state"], migration_progress.state(row)),
            ("reason", row["reason"], None),
            ("goes on", row["blocked_until"], output.full_time(row["blocked_until"], timezone, now)),
            ("problem", row["problem"], None),
            ("read", row["read"], f"{row['read']:,} of {row['expected']:,}"),
            ("done", row["done"], migration_progress.tally(row)),
            ("rate", row["per_second"], f"{row['per_second']:,.1f} a second" if moves else ""),
            (
                "left",
                row["seconds_left"],
                migration_progress.format_duration(row["seconds_left"]) if moves and more else "",
            ),
            ("started", row["started_at"], output.full_time(row["started_at"], timezone, now)),
            ("ended", row["ended_at"], output.full_time(row["ended_at"], timezone, now)),
            ("records forgotten", row["pruned_at"], output.full_time(row["pruned_at"], timezone, now)),
            ("batches", row["batches"], ", ".join(f"{n:,} {word}" for word, n in row["batches"].items())),
            ("you can", ", ".join(row["actions"]), None),
        ]
    )
    columns = [
        Column("type", lambda row: row["type"], keep=True),
        Column("read", lambda row: row["read"], right=True),
        Column("done", lambda row: row["done"], right=True),
        Column("set aside", lambda row: row["set_aside"], right=True),
        Column(
            "states",
            lambda row: row["counts"],
            lambda row: ", ".join(f"{n:,} {w}" for w, n in row["counts"].items()),
        ),
        Column("note", lambda row: row["note"]),
    ]
    if output.on_terminal():
        output.say()
    output.listing(row["types"], columns, as_json=False, nothing="nothing was read yet")
