"""File access below one folder (path traversal guard): opened component by component without following links.

Each component is opened relative to its parent and never through a symbolic link, so a link created between
check and use has no effect. New files are readable by their owner only.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has none of these flags
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_FILE = _NO_LINKS | getattr(os, "O_NONBLOCK", 0)  # a pipe must not block the open


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings of a file connector; `path` is a file, or a folder with one file per record type."""

    path: str
    id: str = "id"
    max_record: int = 1 << 20
    root: Path | None = None  # the folder it is confined to; None: unconfined


@dataclass(frozen=True, slots=True)
class ConfinedPath:
    """A file or folder below a root; `parts` are plain names."""

    root: Path
    parts: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The joined path, for names and suffixes; open files with `open`."""
        return self.root.joinpath(*self.parts)

    @property
    def mode(self) -> int:
        """The type bits of the file, without following a link; 0 if it does not exist."""
        try:
            found = self.path.lstat() if self.parts else self.path.stat()
        except OSError:
            return 0
        return stat.S_IFMT(found.st_mode)

    def below(self, name: str) -> ConfinedPath:
        """Return a file in this folder."""
        return ConfinedPath(self.root, (*self.parts, name))

    def open(self, flags: int) -> int:
        """Open a regular file and return its descriptor; O_CREAT creates missing folders. Raises OSError."""
        creates = bool(flags & os.O_CREAT)
        if creates:
            self.root.mkdir(0o700, parents=True, exist_ok=True)
        at = os.open(self.root, _DIRECTORY)
        try:
            for part in self.parts[:-1]:
                at = _step(at, part, creates=creates)
            file = os.open(self.parts[-1] if self.parts else ".", flags | _FILE, 0o600, dir_fd=at)
        except OSError as error:
            if error.errno == errno.ELOOP:
                error.strerror = "symbolic links are not followed"
            raise
        finally:
            os.close(at)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")


def _step(at: int, part: str, *, creates: bool) -> int:
    """Open the folder below and close the one above."""
    if creates:
        with suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=at)
    below = os.open(part, _DIRECTORY | _NO_LINKS, dir_fd=at)
    os.close(at)
    return below


def confined_path(settings: FileSettings) -> ConfinedPath:
    """Resolve a job's `path`: below the root, or anywhere without one.

    Raises ValueError(option, problem, remedy) for a path outside the root.
    """
    path, root = Path(settings.path), settings.root
    if root is None:
        is_folder = path.is_dir() or not (path.suffix or path.exists())
        return ConfinedPath(path) if is_folder else ConfinedPath(path.parent, (path.name,))
    inner = path
    for base in (root.absolute(), root.resolve()):
        inner = inner.relative_to(base) if inner.is_absolute() and inner.is_relative_to(base) else inner
    if inner.is_absolute() or ".." in inner.parts or "\0" in settings.path:
        problem = "it is outside the folder for migrations"
        raise ValueError("path", problem, "Use a file or folder below migration_folder, such as crm/people")
    return ConfinedPath(root.resolve(), inner.parts)
