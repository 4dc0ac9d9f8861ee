"""The folder and database of a drill: a SQLite file in it, or a separate PostgreSQL schema.

A lock marks a running drill. Kernel and server release it with the process, so leftovers of killed drills can
be recognized.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ..config import Settings
from ..model.errors import Conflict, Misconfigured
from ..store.sqlite_files import FileLock

_PREFIX = "tidings-drill-"
_LOCK = "lock"


@dataclass(slots=True)
class DrillScratch:
    """The working place of a drill; `keep` is read when it ends."""

    id: str
    folder: Path
    database: str
    keep: bool

    @property
    def where(self) -> str:
        """The database without secrets, for display."""
        path = self.database.removeprefix("sqlite:///")
        return path if path != self.database else f"the schema {_schemas().PREFIX}{self.id}"


@contextlib.asynccontextmanager
async def scratch_space(settings: Settings, *, keep: bool) -> AsyncIterator[DrillScratch]:
    """Create a folder beside the user's database; remove it afterwards in any case."""
    id_ = os.urandom(4).hex()
    with _folder(home(settings), id_) as folder:
        place = DrillScratch(id_, folder, f"sqlite:///{folder / 'drill.db'}", keep)
        try:
            if settings.database_path is not None:
                yield place
            else:
                async with _schema_of(place, settings.database):
                    yield place
        finally:
            if not place.keep:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def _schema_of(place: DrillScratch, url: str) -> AsyncIterator[None]:
    schemas = _schemas()
    name = f"{schemas.PREFIX}{place.id}"
    async with schemas.scratch_schema(url, name) as place.database:
        try:
            yield
        finally:
            if not place.keep:
                await schemas.remove_schema(url, name)


def home(settings: Settings) -> Path:
    """Return the folder of the SQLite file, to use the same disk, or the folder for temporary files."""
    path = settings.database_path
    beside = None if path is None else path.absolute().parent
    return beside if beside is not None and beside.is_dir() else Path(tempfile.gettempdir())


async def remove_leftovers(settings: Settings) -> list[str]:
    """Remove leftovers of killed drills; return what was removed."""
    gone: list[str] = []
    for where in sorted({home(settings), Path(tempfile.gettempdir())}):
        for folder in sorted(where.glob(f"{_PREFIX}*")):
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)
                gone.append(str(folder))
    if settings.database_path is None:
        gone += [f"schema {name}" for name in await _schemas().remove_stale_schemas(settings.database)]
    return gone


@contextlib.contextmanager
def _folder(where: Path, id_: str) -> Iterator[Path]:
    folder = where / f"{_PREFIX}{id_}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        remedy = "fix the permissions, or choose another place with --database sqlite:///PATH"
        raise Conflict(f"the folder {folder} cannot be created ({error.strerror})", remedy=remedy) from None
    lock = FileLock(folder / _LOCK)
    lock.take()
    try:
        yield folder
    finally:
        lock.free()


def _is_left(folder: Path) -> bool:
    """Return whether the folder is a leftover of a drill of this user."""
    if folder.is_symlink() or not (folder / _LOCK).is_file() or folder.stat().st_uid != os.getuid():
        return False
    lock = FileLock(folder / _LOCK)
    try:
        return lock.take()
    finally:
        lock.free()


def _schemas() -> ModuleType:
    try:
        from ..store import scratch_schemas as schemas
    except ImportError as error:
        problem = "PostgreSQL needs a driver that is not installed"
        raise Misconfigured(problem, remedy="pip install 'tidings[postgres]'") from error
    return schemas
