"""`tidings alerts`: what the engine found wrong with itself, and who takes care of it."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine, output
from .commands import CommandContext, command
from .help import examples
from .options import After, AsJson, ConfigFile, Limit, argument, option
from .output import Column

group = typer.Typer(help="Alerts: what is wrong with the engine, and who takes care.", no_args_is_help=True)


@command(group, "list", epilog=examples("tidings alerts list", "tidings alerts list --past --json"))
async def list_(
    ask: CommandContext,
    *,
    past: Annotated[bool, typer.Option("--past", help="Those that are over, too.")] = False,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Alerts that are open, newest first."""
    page = await ask.desk.alerts.page(past=past, limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        *Column.plain("state", "severity", "rule", "problem"),
        Column.time("since", "first_at", now),
        Column("taken by", lambda row: row["acknowledged_by"]),
        Column("runbook", lambda row: row["runbook"], spare=True),
        Column("id", lambda row: row["id"], keep=True),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nothing is wrong")


@command(group, epilog=examples("tidings alerts ack 0198c2f0-… --by Ada"))
async def ack(
    ask: CommandContext,
    alert: Annotated[str, argument("ALERT", "The alert's id.")],
    *,
    by: Annotated[str, option("--by", "NAME", "Who takes it on.", show_default=False)],
) -> None:
    """Take an alert on, so that everybody sees who takes care of it."""
    row = await ask.desk.alerts.acknowledge(alert, by)
    ask.answer(
        row, lambda: output.say((row["title"], "bold"), f": {row['acknowledged_by']} takes care of it")
    )


@group.command(epilog=examples("tidings alerts rules > tidings.rules.yml", "promtool check rules FILE"))
def rules(as_json: AsJson = False, config: ConfigFile = None) -> None:
    """The rules with your thresholds, as a file for Prometheus."""
    from ..outbound.alerts import prometheus_rules

    limits = engine.settings(config, None).alerts
    if as_json:
        output.say_json(prometheus_rules.prometheus_alerts(limits))
    else:
        typer.echo(prometheus_rules.rules_file(limits), nl=False)
