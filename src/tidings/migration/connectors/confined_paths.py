"""Where a file connector may read and write: one folder, opened step by step without following links.

Every step below the root is opened relative to the one before it and never through a symbolic link, so a link
that appears between a check and the use leads nowhere. New files can be read by their owner only.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the open


class HasConfinedPath(Protocol):
    """The settings of a file connector."""

    @property
    def path(self) -> str:
        """As the job names it."""

    @property
    def root(self) -> Path | None:
        """What it is confined to."""


@dataclass(frozen=True, slots=True)
class ConfinedPath:
    """A file or folder below a root; `parts` are plain names."""

    root: Path
    parts: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """As one path, for names and suffixes; files are opened with `open`."""
        return self.root.joinpath(*self.parts)

    @property
    def mode(self) -> int:
        """The type bits of what is there, without following a link; 0 if nothing is."""
        try:
            found = self.path.lstat() if self.parts else self.path.stat()
        except OSError:
            return 0
        return stat.S_IFMT(found.st_mode)

    def below(self, name: str) -> ConfinedPath:
        """A file in this folder."""
        return ConfinedPath(self.root, (*self.parts, name))

    def open(self, flags: int) -> int:
        """A descriptor of a regular file; with O_CREAT missing folders are made. Raises OSError."""
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
                error.strerror = "it is a symbolic link, which is not followed"
            raise
        finally:
            os.close(at)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        raise OSError(errno.EINVAL, "it is not a regular file")


def _step(at: int, part: str, *, creates: bool) -> int:
    """The folder below, in exchange for the one above."""
    if creates:
        with suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=at)
    below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    os.close(at)
    return below


def confined_path(settings: HasConfinedPath) -> ConfinedPath:
    """What a job's `path` names: below the root, or without one, wherever its author says.

    Raises ValueError(option, problem, remedy) for a path that leads out of the root.
    """
    path, root = Path(settings.path), settings.root
    if root is None:
        is_folder = path.is_dir() or not (path.suffix or path.exists())
        return ConfinedPath(path) if is_folder else ConfinedPath(path.parent, (path.name,))
    inner = path
    for base in (root.absolute(), root.resolve()):
        inner = inner.relative_to(base) if inner.is_absolute() and inner.is_relative_to(base) else inner
    if inner.is_absolute() or ".." in inner.parts or "\0" in settings.path:
        problem = "it leads out of the folder that migrations may use"
        raise ValueError("path", problem, "Name a file or folder below migration_folder, such as crm/people")
    return ConfinedPath(root.resolve(), inner.parts)
