"""`tidings alerts`: problems that the engine detected, and their acknowledgment."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine, output
from .commands import CommandContext, command
from .help import examples
from .options import After, AsJson, ConfigFile, Limit, argument, option
from .output import Column

group = typer.Typer(help="List and acknowledge alerts; export the rules for Prometheus.", no_args_is_help=True)


@command(group, "tidings alerts list", "tidings alerts list --past --json", name="list")
async def list_(
    ctx: CommandContext,
    *,
    past: Annotated[bool, typer.Option("--past", help="Include resolved alerts.")] = False,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List open alerts, newest first."""
    page = await ctx.outbound.alerts.page(past=past, limit=limit, after=after)
    columns = Column.plain(
        "state", "severity", "rule", "problem", "since=first_at:time", "acknowledged_by", "runbook:spare", "id:keep"
    )
    ctx.listing(page.items, columns, more=page.next, nothing="no alerts")


@command(group, "tidings alerts ack 0198c2f0-… --by Ada")
async def ack(
    ctx: CommandContext,
    alert: Annotated[str, argument("ALERT", "Alert id.")],
    *,
    by: Annotated[str, option("NAME", "Person who handles the alert.", show_default=False)],
) -> None:
    """Acknowledge an alert, so that others see who handles it."""
    row = await ctx.outbound.alerts.acknowledge(alert, by)
    ctx.answer(row, lambda: output.say((row["title"], "bold"), f": acknowledged by {row['acknowledged_by']}"))


@group.command(epilog=examples("tidings alerts rules > tidings.rules.yml", "promtool check rules FILE"))
def rules(as_json: AsJson = False, config: ConfigFile = None) -> None:
    """Print the alert rules with your thresholds as a Prometheus rules file."""
    from ..outbound.alerts import prometheus_rules

    limits = engine.settings(config, None).alerts
    if as_json:
        output.say_json(prometheus_rules.prometheus_alerts(limits))
    else:
        typer.echo(prometheus_rules.rules_file(limits), nl=False)
