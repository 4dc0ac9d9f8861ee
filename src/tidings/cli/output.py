"""What commands print: a table on a terminal, tab-separated lines in a pipe, JSON on request.

Lines in a pipe are for other programs: one row each, all columns in full, times in ISO 8601, no colours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Row = Mapping[str, Any]
Fact: TypeAlias = "tuple[str, object, str | Text | None]"

STATE_STYLES = {
    "sent": "green",
    "done": "green",
    "pending": "cyan",
    "processing": "blue",
    "failed": "bold red",
    "cancelled": "dim",
    "expired": "yellow",
    "skipped": "dim",
    "received": "cyan",
}


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class Column(NamedTuple):
    """One column: what machines read, and, where it differs, what people read."""

    title: str
    value: Callable[[Row], object]
    shown: Callable[[Row], str | Text] | None = None
    keep: bool = False  # never cut: it is there to be copied
    right: bool = False
    spare: bool = False  # left out where the terminal is narrow

    @classmethod
    def plain(cls, *keys: str) -> list[Column]:
        """Columns of what a row has under these keys, as it is."""
        return [cls(key.replace("_", " "), itemgetter(key)) for key in keys]

    @classmethod
    def time(cls, title: str, key: str, now: int, *, spare: bool = False) -> Column:
        """A time; people read how far it is from now."""
        return cls(title, itemgetter(key), lambda row: relative_time(row[key], now), spare=spare)


def on_terminal() -> bool:
    """Whether a person is looking."""
    return sys.stdout.isatty()


def console() -> Console:
    """The terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not on_terminal())


@contextmanager
def working(words: str, *, is_shown: bool = True) -> Iterator[Callable[[str], None]]:
    """A sign of life where a person looks, for what may take long; what it gives changes the words."""
    if not (is_shown and on_terminal()):
        yield lambda _: None
        return
    with console().status(words) as status:
        yield status.update


def say(*parts: str | Text | tuple[str, str], end: str = "\n") -> None:
    """One line; parts may be (text, style)."""
    from rich.text import Text

    console().print(Text.assemble(*parts), end=end, soft_wrap=True)


def warn(text: str) -> None:
    """Something to think about, beside the answer."""
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble(("note:", "yellow"), f" {text}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(line)


def say_json(value: object) -> None:
    """A value for programs."""
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def listing(
    rows: Sequence[Row], columns: Sequence[Column], *, as_json: bool, more: str | None = None, nothing: str
) -> None:
    """Many rows. `more` is where the next page begins, `nothing` what to say when there are none."""
    if as_json:
        say_json({"items": rows, "next": more})
    elif not on_terminal():
        lines(rows, columns)
    elif not rows:
        say((nothing, "dim"))
    else:
        table(rows, columns)
        if more is not None:
            say((f"more: add --after {more}", "dim"))


def lines(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    """Tab-separated, with a heading."""
    print("\t".join(column.title.replace(" ", "_") for column in columns))
    for row in rows:
        print("\t".join(flat(column.value(row)) for column in columns))


def table(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Aligned, one line per row, as wide as the terminal."""
    from .table_layout import ColumnLayout, lay_out

    cells = [[quoted((column.shown or _plainly(column.value))(row)) for column in columns] for row in rows]
    shapes = [ColumnLayout(column.title, column.keep, column.right, column.spare) for column in columns]
    terminal = console()
    for line in lay_out(shapes, cells, terminal.width):
        terminal.print(line, soft_wrap=True)


def fields(row: Row, *keys: str) -> list[Fact]:
    """Facts of what a row has under these keys, or of all of it, as it is."""
    return [(key.replace("_", " "), row[key], None) for key in keys or row]


def facts(pairs: Sequence[Fact]) -> None:
    """Names and values of one thing; each value for machines and, where it differs, for people."""
    if not on_terminal():
        for name, value, _ in pairs:
            print(f"{name.replace(' ', '_')}\t{flat(value)}")
        return
    from rich.table import Table

    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value, shown in pairs:
        text = spoken(flat(value)) if shown is None else shown
        if text:
            grid.add_row(name, quoted(text))
    console().print(grid)


def flat(value: object) -> str:
    """A value on one line, without anything that could move a cursor or fake a column."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        import orjson

        return orjson.dumps(value).decode()
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def state(row: Row) -> Text:
    """A message's state in its colour."""
    from rich.text import Text

    word = row["state"]
    return Text(word, STATE_STYLES.get(word, "")) + (
        Text("?", "bold yellow") if row.get("unknown") else Text()
    )


def relative_time(iso_time: str | None, now: int) -> str:
    """Roughly how far a time is from now: 'in 3 min', '2 h ago'."""
    if iso_time is None:
        return ""
    from ..model.durations import humanize
    from ..model.time import instant

    distance = timedelta(microseconds=instant(datetime.fromisoformat(iso_time)) - now)
    if abs(distance) < timedelta(seconds=1):
        return "now"
    length = " ".join(humanize(abs(distance)).split()[:2])
    return f"in {length}" if distance > timedelta(0) else f"{length} ago"


def full_time(iso_time: str | None, timezone: Any, now: int) -> str | None:
    """A time in full with its distance, as it is echoed everywhere."""
    if iso_time is None:
        return None
    from ..inputs.natural_times import describe_time
    from ..model.time import instant

    return describe_time(instant(datetime.fromisoformat(iso_time)), timezone, now=now)


def spoken(text: str) -> str:
    """A text as people read it: its times as one says them. In a pipe it stays as it is."""
    if not on_terminal():
        return text
    return _INSTANT.sub(lambda found: f"{datetime.fromisoformat(found[0]):%a %d %b %Y %H:%M:%S} UTC", text)


def _plainly(value: Callable[[Row], object]) -> Callable[[Row], str]:
    return lambda row: spoken(flat(value(row)))


def quoted(text: str | Text) -> Text:
    """A text that is not markup: messages may hold brackets."""
    from rich.text import Text

    return Text(text) if isinstance(text, str) else text
