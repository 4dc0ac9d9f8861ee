"""Moving the database to PostgreSQL, with a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import engine, output

if TYPE_CHECKING:
    from ..config import Settings


def move(chosen: Settings, to: str | None, *, undo: bool, as_json: bool) -> None:
    """Do it, or take it back."""
    from ..model.errors import Conflict, Invalid

    path = chosen.database_path
    if path is None:
        raise Conflict("only a SQLite file is moved", remedy="name it with --database sqlite:///PATH")
    if undo:
        return _undo(path, as_json=as_json)
    if to is None or not to.startswith("postgresql://"):
        raise Invalid(
            "there is no PostgreSQL database to move to",
            field="to",
            remedy="add --to postgresql://user@host/name",
        )
    _move(path, to, as_json=as_json)


def _move(path: Path, to: str, *, as_json: bool) -> None:
    from ..config import mask_url
    from ..model.errors import Misconfigured
    from ..store.encryption import KEY_FILE

    try:
        from ..store.sqlite_to_postgres import move_database as moved
    except ImportError as error:
        raise Misconfigured(
            "PostgreSQL needs a driver that is not installed", remedy="pip install 'tidings[postgres]'"
        ) from error
    where = mask_url(to)
    with _bar(is_shown=output.on_terminal() and not as_json) as told:
        counted = engine.run(moved(path, to, where=where, progress=told))
    rows = sum(counted.values())
    if as_json:
        output.say_json({"from": str(path), "to": where, "rows": rows, "tables": counted})
        return
    output.say(("✓ ", "green"), f"{rows:,} rows of {len(counted)} tables are in {where}, each compared")
    output.say(f"  {path} refuses to be worked on from now on; set database to the new address")
    if (key := path.parent / KEY_FILE).exists():
        output.say(f"  its secrets stay encrypted: set encryption_keys to the key in {key}, too")


def _undo(path: Path, *, as_json: bool) -> None:
    from ..model.errors import Conflict
    from ..store.sqlite_to_postgres import undo_move

    if not undo_move(path):
        raise Conflict(f"{path} was not moved", remedy="nothing has to be undone")
    if as_json:
        output.say_json({"database": str(path), "moved": False})
    else:
        output.say(("✓ ", "green"), f"{path} is in use again; let nobody work on the other database")


@contextmanager
def _bar(*, is_shown: bool) -> Iterator[Callable[[str, int], None]]:
    if not is_shown:
        yield lambda _table, _rows: None
        return
    with output.console().status("moving") as status:
        yield lambda table, rows: status.update(f"{table}: {rows:,} rows")
