"""Input and output files of commands, with a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..model.errors import Invalid, TidingsError
from . import output
from .errors import error_text

if TYPE_CHECKING:
    from ..outbound.contacts.uploads import UploadFormat

MAX_REPORTED = 20  # invalid lines that are printed; the rest are counted
_PIECE = 1 << 16

Show = Callable[[int], None]


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file for reading; `-` is stdin. Raises Invalid if it cannot be read."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115  (closed below)
    except OSError as error:
        problem = f"{name} cannot be read ({error.strerror})"
        raise Invalid(problem, remedy="check the path", field="file") from None
    with file:
        yield file


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file for writing; None is stdout. Raises Invalid if it cannot be written."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = path.open("wb")
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise Invalid(problem, remedy="check the path", field="output") from None
    with file:
        yield file


@contextmanager
def progress(file: BinaryIO, *, is_shown: bool) -> Iterator[Show]:
    """Show a progress bar in bytes, on a terminal and for a file of known size."""
    if not (is_shown and output.on_terminal() and file.seekable()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task("", total=Path(file.name).stat().st_size)
        yield lambda read: bar.update(task, completed=read)


async def pieces(file: BinaryIO, show: Show) -> AsyncIterator[bytes]:
    """Yield the bytes of a file from its current position."""
    read = 0
    while piece := file.read(_PIECE):
        read += len(piece)
        yield piece
        show(read)


def format_of(name: str, given: str | None) -> UploadFormat:
    """Return the given format, or the one of the file's name. Raises Invalid."""
    from ..outbound.contacts.uploads import upload_format

    if given is None and name == "-":
        raise Invalid("stdin has no file name to tell its format", field="format", remedy="add --format csv or ndjson")
    return upload_format(f".{given}" if given is not None else name)


def print_bad_rows(bad: Sequence[tuple[int, TidingsError]], *, word: str, room: int) -> None:
    """Print at most `room` invalid lines to stderr."""
    for number, error in bad[: max(0, room)]:
        print(f"{word} {number}: {error_text(error)}", file=sys.stderr)
    if 0 <= room < len(bad):
        print(f"further invalid {word}s are only counted", file=sys.stderr)
