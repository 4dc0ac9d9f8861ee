"""`tidings db move`: from SQLite to PostgreSQL, with progress on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import engine, output

if TYPE_CHECKING:
    from ..config import Settings


def move(chosen: Settings, to: str | None, *, undo: bool, as_json: bool) -> None:
    """Move the database, or undo the move. Raises Conflict or Invalid."""
    from ..model.errors import Conflict, Invalid

    path = chosen.database_path
    if path is None:
        raise Conflict("only a SQLite database can be moved", remedy="name it with --database sqlite:///PATH")
    if undo:
        return _undo(path, as_json=as_json)
    if to is None or not to.startswith("postgresql://"):
        raise Invalid("no PostgreSQL database is given", field="to", remedy="add --to postgresql://user@host/name")
    _move(path, to, as_json=as_json)


def _move(path: Path, to: str, *, as_json: bool) -> None:
    from ..config import mask_url
    from ..model.errors import Misconfigured
    from ..store.encryption import KEY_FILE

    try:
        from ..store.sqlite_to_postgres import move_database
    except ImportError as error:
        raise Misconfigured(
            "PostgreSQL needs a driver that is not installed", remedy="pip install 'tidings[postgres]'"
        ) from error
    where = mask_url(to)
    with output.working("moving", is_shown=not as_json) as say:
        work = move_database(path, to, where=where, progress=lambda table, rows: say(f"{table}: {rows:,} rows"))
        counted = engine.run(work)
    rows = sum(counted.values())
    if as_json:
        output.say_json({"from": str(path), "to": where, "rows": rows, "tables": counted})
        return
    output.say(("✓ ", "green"), f"moved and compared {rows:,} rows of {len(counted)} tables to {where}")
    output.say(f"  {path} is locked from now on; set database to the new address")
    if (key := path.parent / KEY_FILE).exists():
        output.say(f"  secrets stay encrypted: also set encryption_keys to the key in {key}")


def _undo(path: Path, *, as_json: bool) -> None:
    from ..model.errors import Conflict
    from ..store.sqlite_to_postgres import undo_move

    if not undo_move(path):
        raise Conflict(f"{path} was not moved", remedy="there is nothing to undo")
    if as_json:
        output.say_json({"database": str(path), "moved": False})
    else:
        output.say(("✓ ", "green"), f"{path} is unlocked; stop all processes that use the other database")
