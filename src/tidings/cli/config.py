"""`tidings config`: every setting with its value and origin."""

from __future__ import annotations

from . import engine, output
from .options import AsJson, ConfigFile, Database
from .output import Column

EXAMPLES = ("tidings config", "TIDINGS_CONCURRENCY=50 tidings config --json")


def config(as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Show every setting with its value, origin and meaning. Secrets are masked."""
    from dataclasses import fields

    chosen = engine.settings(config, database, sends=True)
    values = chosen.describe()
    if as_json:
        output.say_json(values)
        return
    about = {field.name: field.metadata.get("about", "") for field in fields(chosen)}
    about |= {f"alerts.{field.name}": field.metadata["about"] for field in fields(chosen.alerts)}
    rows = [
        {"name": name, "value": value, "origin": chosen.origins.get(name, "default"), "about": about[name]}
        for name, value in values.items()
        if name not in ("channels", "policies", "alerts")
    ]
    for table in ("channels", "policies", "alerts"):
        rows += [
            {
                "name": f"{table}.{name}",
                "value": value,
                "origin": chosen.origins.get(f"{table}.{name}", "default" if table == "alerts" else ""),
                "about": about.get(f"{table}.{name}", ""),
            }
            for name, value in values[table].items()
        ]
    columns = Column.plain("setting=name:keep", "value", "from=origin", "about")
    output.listing(rows, columns, nothing="")
