"""Help in plain text: sections, short lines, examples to paste. Costs no import but the parser's."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SECTIONS = {
    "Send": ("serve", "send", "broadcasts", "schedules", "templates"),
    "People": ("contacts", "lists", "suppressions"),
    "Look": ("messages", "log", "dead", "channels", "nodes", "alerts", "top"),
    "Hear": ("inbox", "roster", "cases", "calendar", "models"),
    "Connect": ("subscriptions", "rollout", "import", "migrate"),
    "Look after": ("keys", "audit", "doctor", "drill", "db", "config", "sandbox", "version"),
}


def examples(*lines: str) -> str:
    """Lines at the end of a command's help, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class SectionedHelp(TyperGroup):
    """The whole program: commands by what one wants to do."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section for each purpose, commands in the order a newcomer meets them."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:<{width}}", self.commands[name].get_short_help_str(200)) for name in names]
                )
