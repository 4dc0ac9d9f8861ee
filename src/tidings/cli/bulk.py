"""Many messages from a file: streamed, a chunk a transaction, each line on its own.

A bad line is told and skipped. With a key, a call that broke off can simply be repeated.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..model.errors import CallerError, Invalid, TidingsError
from . import engine, output
from .drafts import read_line
from .failures import sentence

if TYPE_CHECKING:
    from ..app import App
    from ..config import Settings
    from ..model.message import Draft

_MOST_TOLD = 20  # bad lines that are spelt out


async def send_file(
    chosen: Settings, name: str, usual: Mapping[str, Any], *, key: str | None, as_json: bool
) -> int:
    """Accept every line; the exit code says whether all of them were good."""
    with _opened(name) as file:
        size = 0 if name == "-" else Path(name).stat().st_size
        async with engine.opened(chosen) as app:
            accepted, refused = 0, 0
            with _progress(size) as show:
                lines = app.messages.accept_many(_drafts(app, file, usual, show), key=key)
                async for chunk in lines:
                    bad = [line for line in chunk if line.error is not None]
                    for line in bad[: max(0, _MOST_TOLD - refused)]:
                        assert line.error is not None
                        print(f"line {line.number}: {sentence(line.error)}", file=sys.stderr)
                    refused += len(bad)
                    accepted += len(chunk) - len(bad)
    if as_json:
        output.say_json({"accepted": accepted, "refused": refused})
    elif output.on_terminal():
        output.say(
            ("✓ ", "green"), f"{accepted:,} accepted", *((f", {refused:,} refused",) if refused else ())
        )
    else:
        print(f"accepted\t{accepted}\nrefused\t{refused}")
    return CallerError.exit_code if refused else 0


async def _drafts(
    app: App, file: BinaryIO, usual: Mapping[str, Any], show: Any
) -> AsyncIterator[tuple[int, Draft | TidingsError]]:
    read = 0
    for number, line in enumerate(file, 1):
        read += len(line)
        if number % 1000 == 0:
            show(read)
        if number > app.settings.max_bulk:
            limit = app.settings.max_bulk
            raise Invalid(f"the file has more than {limit:,} lines", remedy="split it, or raise max_bulk")
        if not line.strip():
            continue
        try:
            yield number, read_line(line, usual, now=app.clock.now(), zone=app.settings.zone)
        except TidingsError as error:
            yield number, error
    show(read)


def _opened(name: str) -> Any:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Invalid(
            f"{name} cannot be read ({error.strerror})", remedy="check the path", field="file"
        ) from None


def _progress(size: int) -> Any:
    """A bar by bytes where a person looks and the size is known."""
    if not (output.on_terminal() and size):
        return nullcontext(lambda _: None)
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    return _Bar(Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), transient=True), size)


class _Bar:
    def __init__(self, progress: Any, size: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=size)

    def __enter__(self) -> Any:
        self._progress.__enter__()
        return lambda read: self._progress.update(self._task, completed=read)

    def __exit__(self, *failure: Any) -> None:
        self._progress.__exit__(*failure)
