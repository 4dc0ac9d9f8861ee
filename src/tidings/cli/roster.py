"""`tidings roster`: who may speak, with squad and role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..inbound.service import InboundService

group = typer.Typer(help="The roster: who may speak, with squad and role.", no_args_is_help=True)

Sender = Annotated[str, argument("SENDER", "The platform's id of the person.")]
Source = Annotated[str | None, option("--source", "NAME", "On this source; without it on every one.")]


@command(group, "list", epilog=examples("tidings roster list", "tidings roster list --squad 42"))
async def list_(
    ask: CommandContext,
    *,
    squad: Annotated[str | None, option("--squad", "NAME", "Only of this squad.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Who may speak, by name."""
    page = await ask.app.inbound.roster.page(squad=squad, limit=limit, after=after)
    columns = [
        Column("sender", lambda row: row["sender"], keep=True),
        *Column.plain("name", "squad", "role"),
        Column("source", lambda row: row["source"], lambda row: row["source"] or "all"),
    ]
    nothing = "nobody yet; see: tidings roster add --help"
    ask.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, epilog=examples('tidings roster add 1001 --name "Ada" --squad 42 --role officer'))
async def add(
    ask: CommandContext,
    sender: Sender,
    *,
    name: Annotated[str, option("--name", "NAME", "What people call them.", show_default=False)],
    squad: Annotated[str, option("--squad", "NAME", "The squad they speak for.", show_default=False)],
    role: Annotated[str, option("--role", "ROLE", "member, officer or admin.")] = "member",
    source: Source = None,
) -> None:
    """Put somebody on the roster, or change the entry."""
    body = {"sender": sender, "name": name, "squad": squad, "role": role, "source": source}
    row, what = await ask.app.inbound.roster.put(body)
    ask.answer({**row, "what": what}, lambda: output.say((row["name"], "bold"), f" {what}"))


@command(group, epilog=examples("tidings roster remove 1001"))
async def remove(ask: CommandContext, sender: Sender, *, source: Source = None) -> None:
    """Take somebody off; what they said before stays."""
    row = await ask.app.inbound.roster.remove(sender, source)
    ask.answer(row, lambda: output.say((row["name"], "bold"), " is off the roster"))


@command(group, "import", epilog=examples("tidings roster import people.csv --dry-run"))
async def import_(
    ask: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or NDJSON; - reads standard input.")],
    *,
    form: Annotated[str | None, option("--form", "FORM", "csv or ndjson, if no name says so.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> int:
    """Many at once: columns sender, name, squad, role and source. The same file again changes nothing."""
    counts = await _taken(ask.app.inbound, file, form, ask.app.settings.max_bulk, dry_run=dry_run)
    words = ("created", "changed", "unchanged", "refused")
    summary = {word: counts.get(word, 0) for word in words}

    def in_words() -> None:
        said = ", ".join(f"{n:,} {word}" for word, n in summary.items() if n) or "nothing"
        output.say(said, "; nothing was written" if dry_run else "")

    ask.answer(summary, in_words)
    return 2 if summary["refused"] else 0


async def _taken(
    desk: InboundService, name: str, form: str | None, most: int, *, dry_run: bool
) -> dict[str, int]:
    from ..outbound.contacts import uploads
    from . import files

    counts: dict[str, int] = {}
    with files.opened(name) as file:
        pieces = files.pieces(file, lambda _: None)
        rows = uploads.read_rows(pieces, files.form_of(name, form), largest=65_536, most_lines=most)
        async for progress in desk.roster.take(rows, dry_run=dry_run):
            files.print_bad_rows(progress.bad, word="row", room=files.MAX_REPORTED - counts.get("refused", 0))
            for word, n in progress.counts.items():
                counts[word] = counts.get(word, 0) + n
    return counts
