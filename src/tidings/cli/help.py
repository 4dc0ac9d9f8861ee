"""Help as plain text: commands grouped by purpose, and examples to paste. Imports only the parser."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SECTIONS = {
    "Start": ("serve", "docs"),
    "Send messages": ("send", "broadcasts", "schedules", "templates"),
    "Manage recipients": ("contacts", "lists", "suppressions"),
    "Track and fix deliveries": ("messages", "log", "dead", "channels", "rollout"),
    "Monitor the engine": ("top", "nodes", "alerts", "sla", "doctor"),
    "Receive messages": ("inbox", "roster", "cases", "calendar", "models"),
    "Integrate and move data": ("subscriptions", "import", "migrate"),
    "Administer": ("keys", "audit", "config", "db", "version"),
    "Test": ("sandbox", "drill"),
}


def examples(*lines: str) -> str:
    """Format example commands for the end of a help text, without wrapping."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class SectionedHelp(TyperGroup):
    """The root command, which lists its subcommands by purpose."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per purpose."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:<{width}}", self.commands[name].get_short_help_str(200)) for name in names]
                )
