"""A disk whose power can be cut: a file system in a file, on one that copies files in a moment.

What a server has written and not synced lies in the memory of the upper file system, not in its file. A copy
of that file is the disk as a power cut would leave it. Only root can mount one.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")  # a sync costs nothing there, and what was not synced is lost all the same


class Disk:
    """`place` is where its files are, for any account. Made by `cuttable`."""

    def __init__(self, below: Path) -> None:
        self._image = below / "disk"
        self._copy = below / "copy"
        self.place = below.parent / "place"
        self.place.mkdir()

    def format(self, size: str) -> None:
        """An empty disk, mounted."""
        _run("truncate", "-s", size, self._image)
        _run("mkfs.ext4", "-q", "-F", self._image)
        self.mount()
        self.place.chmod(0o777)

    def mount(self) -> None:
        """Plug it in: what its journal tells is done."""
        _run("mount", "-o", "loop", self._image, self.place)

    def unmount(self) -> None:
        """Nobody may use it any more."""
        _run("umount", self.place)

    def write_through(self) -> None:
        """All that was written so far is on the disk."""
        _run("sync", "--file-system", self.place)

    def keep(self) -> None:
        """What is on the disk at this moment; whoever writes there should stand still."""
        _run("cp", "--reflink=always", self._image, self._copy)

    def go_back(self) -> None:
        """The disk is what was kept: all that came later, and all that lay in memory, is gone."""
        self.unmount()
        self._copy.replace(self._image)
        self.mount()


@contextlib.contextmanager
def cuttable(size: str = "500m") -> Iterator[Disk]:
    """A disk for the length of a test; skips where there can be none."""
    if shutil.which("mkfs.xfs") is None:
        pytest.skip("mkfs.xfs is not installed: apt install xfsprogs")
    with tempfile.TemporaryDirectory(prefix="tidings-power-", dir=_MEMORY if _MEMORY.is_dir() else None) as made:
        folder = Path(made)
        folder.chmod(0o755)  # root's server runs as nobody, who must be able to pass through
        (below := folder / "below").mkdir()
        _run("truncate", "-s", "2g", folder / "image")
        _run("mkfs.xfs", "-q", "-m", "reflink=1", folder / "image")
        try:
            _run("mount", "-o", "loop", folder / "image", below)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no disk can be mounted here: {error.stderr.strip()}")
        disk = Disk(below)
        try:
            disk.format(size)
            yield disk
        finally:
            for place in (disk.place, below):
                subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)


def _run(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)
