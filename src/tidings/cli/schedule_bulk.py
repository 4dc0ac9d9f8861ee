"""`tidings schedules import`, and pause, resume, end and remove: one schedule, or all that match a filter."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from . import files, output, shell_completion
from .commands import CommandContext, command
from .options import DryRun, InputFile, InputFormat, Key, Yes, argument, drop_none
from .schedules import ScheduleFilterOptions, answer, group

SomeSchedule = Annotated[
    str | None,
    argument("ID", "Schedule id; omit it to select schedules by options.", complete=shell_completion.schedules),
]


@dataclass(frozen=True)
class SelectionOptions(ScheduleFilterOptions):
    """Which schedules an action changes."""

    all_: Annotated[bool, typer.Option("--all", help="Every schedule.")] = False


def _add(action: str, done: str, help_: str, *lines: str) -> None:
    """Add a command that changes one schedule, or counts those that match, asks, and changes them."""

    async def change(
        ctx: CommandContext,
        schedule: SomeSchedule = None,
        *,
        chosen: SelectionOptions,
        dry_run: DryRun = False,
        yes: Yes = False,
    ) -> None:
        body = drop_none(**{name.strip("_"): value or None for name, value in asdict(chosen).items()})
        if schedule is not None:
            if body or dry_run:
                from ..model.errors import Invalid

                raise Invalid("an id and a filter are both given", field="ID", remedy="give one of them")
            answer(ctx, await getattr(ctx.outbound.schedules, action)(schedule), done)
            return
        bulk = ctx.outbound.schedule_bulk
        found = await bulk.change(action, body | {"dry_run": True})
        more = " or more" if found.more else ""
        if dry_run:
            ctx.answer(found._asdict(), lambda: output.say(f"{found.matched:,}{more} schedules would be {done}"))
            return
        if not yes:
            _confirm(f"{action} {found.matched:,}{more} schedules")
        changed, is_over = 0, False
        with output.working(f"{action} schedules", is_shown=not ctx.as_json):
            while not is_over:
                step = await bulk.change(action, body)
                changed, is_over = changed + step.changed, not step.more or not step.changed
        ctx.answer({"matched": found.matched, "changed": changed}, lambda: output.say(f"{changed:,} schedules {done}"))

    change.__doc__ = help_
    command(group, *lines, name=action)(change)


_add(
    "pause",
    "paused",
    "Pause a schedule, or all that match, until they are resumed.",
    "tidings schedules pause ID",
    "tidings schedules pause --tag reminders --dry-run",
)
_add(
    "resume",
    "resumed",
    "Resume a schedule, or all that match, with the next run from now.",
    "tidings schedules resume ID",
    "tidings schedules resume --channel phone --yes",
)
_add("end", "ended", "End a schedule, or all that match, permanently; the log stays.", "tidings schedules end ID")
_add(
    "remove",
    "deleted",
    "Delete a schedule, or all that match, with the log. Created messages stay.",
    "tidings schedules remove ID",
    "tidings schedules remove --state ended --yes",
)


@command(
    group,
    "tidings schedules import rounds.csv --dry-run",
    "tidings schedules import rounds.csv --key rounds",
    name="import",
)
async def import_(
    ctx: CommandContext, file: InputFile, *, format_: InputFormat = None, dry_run: DryRun = False, key: Key = None
) -> int:
    """Create a schedule from each row of a CSV or NDJSON file. An invalid row is reported and skipped.

    CSV columns: the rule under its kind (cron, every, daily, weekly, monthly, yearly or rrule), channel, to,
    text or template, and any of name, timezone, start, end, count, excluded_dates, catch_up, overlap, tags.
    """
    from ..model.errors import CallerError
    from ..outbound.contacts.uploads import read_rows

    settings, created, refused = ctx.app.settings, 0, 0
    read_as = files.format_of(file, format_)
    with files.opened(file) as source, files.progress(source, is_shown=not ctx.as_json) as show:
        largest = 3 * settings.max_body + 16_384
        rows = read_rows(files.pieces(source, show), read_as, largest=largest, most_lines=settings.max_bulk)
        results = ctx.outbound.schedule_bulk.create_many(rows, timezone=settings.timezone, key=key, dry_run=dry_run)
        async for lines in results:
            bad = [(line.number, line.error) for line in lines if line.error is not None]
            files.print_bad_rows(bad, word="row", room=files.MAX_REPORTED - refused)
            created, refused = created + len(lines) - len(bad), refused + len(bad)
    word = "valid" if dry_run else "created"
    summary = {word: created, "refused": refused}
    ctx.answer(summary, lambda: output.say(f"{created:,} {word}" + (f", {refused:,} rejected" if refused else "")))
    return CallerError.exit_code if refused else 0


def _confirm(what: str) -> None:
    """Ask for confirmation; without a terminal, --yes is required."""
    if not sys.stdin.isatty():
        from ..model.errors import Invalid

        raise Invalid(f"this would {what}", remedy="add --yes to confirm", field="yes")
    typer.confirm(f"{what.capitalize()}?", abort=True)
