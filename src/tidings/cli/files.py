"""Files that commands read or write: opened or refused in a sentence, with a bar for people."""

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

MAX_REPORTED = 20  # bad lines that are spelt out
_PIECE = 1 << 16

Show = Callable[[int], None]


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """A file by its name; `-` is standard input."""
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
    """A file to be written; without a path standard output."""
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
    """A bar by bytes, where a person looks and the size is known."""
    if not (is_shown and output.on_terminal() and file.seekable()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task("", total=Path(file.name).stat().st_size)
        yield lambda read: bar.update(task, completed=read)


async def pieces(file: BinaryIO, show: Show) -> AsyncIterator[bytes]:
    """The bytes of a file, from where it stands."""
    read = 0
    while piece := file.read(_PIECE):
        read += len(piece)
        yield piece
        show(read)


def form_of(name: str, given: str | None) -> UploadFormat:
    """CSV or NDJSON, as said or as the file is called."""
    from ..outbound.contacts.uploads import upload_format

    if given is None and name == "-":
        raise Invalid(
            "standard input does not say what it is", field="form", remedy="add --form csv or --form ndjson"
        )
    return upload_format(f".{given}" if given is not None else name)


def print_bad_rows(bad: Sequence[tuple[int, TidingsError]], *, word: str, room: int) -> None:
    """Bad lines on standard error, as many as there is room for."""
    for number, error in bad[: max(0, room)]:
        print(f"{word} {number}: {error_text(error)}", file=sys.stderr)
    if 0 <= room < len(bad):
        print(f"further bad {word}s are only counted", file=sys.stderr)
