"""`tidings doctor`: checks of the whole installation, with remedies."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import typer

from . import engine, output
from .options import AsJson, ConfigFile, Database
from .output import Column, Row

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from ..doctor import DoctorFinding

EXAMPLES = ("tidings doctor", "tidings doctor --config /etc/tidings.toml")
_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


def doctor(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Check the installation and suggest fixes.

    Checks settings, database, disk, clock, processes, channels, messages and dead letters. Changes nothing.
    Exit code 1 if a problem needs your action.
    """
    from ..doctor import FindingSeverity

    with output.working("checking", is_shown=not as_json):
        findings = _examine(config, database)
    rows = [{**finding._asdict(), "status": finding.status.value} for finding in findings]
    if as_json or not output.on_terminal():
        columns = [Column(name, itemgetter(name)) for name in ("check", "status", "message", "remedy")]
        output.listing(rows, columns, as_json=as_json, nothing="")
    else:
        for row in rows:
            output.say(_mark(row), f" {row['check']:<14}", row["message"])
            if row["remedy"]:
                output.say((f"                 → {row['remedy']}", _MARKS[row["status"]][1]))
    raise typer.Exit(1 if any(finding.status is FindingSeverity.ERROR for finding in findings) else 0)


def _examine(config: Path | None, database: str | None) -> list[DoctorFinding]:
    from ..doctor import DoctorFinding, FindingSeverity, run_checks
    from ..model.errors import Misconfigured

    try:
        chosen = engine.settings(config, database, sends=True)
    except Misconfigured as error:
        return [DoctorFinding("settings", FindingSeverity.ERROR, error.problem, error.remedy)]
    return engine.run(run_checks(chosen))


def _mark(row: Row) -> Text:
    from rich.text import Text

    return Text(*_MARKS[row["status"]])
