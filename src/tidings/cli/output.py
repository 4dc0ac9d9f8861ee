"""Output: tables on a terminal, tab-separated lines in a pipe, JSON with --json.

Lines in a pipe are for programs: one per row, all columns in full, times in ISO 8601, no colors.
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

_STATES_BY_STYLE = {
    "green": "active completed done open sent unchanged written",
    "cyan": "approved new pending planned received",
    "blue": "planning processing running",
    "yellow": "breaker_open conflict expired loading offline paused throttled",
    "red": "rejected",
    "bold red": "failed",
    "dim": "cancelled ended revoked skipped",
}
STATE_STYLES = {state: style for style, states in _STATES_BY_STYLE.items() for state in states.split()}

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class Column(NamedTuple):
    """One column: its value for programs and, where it differs, its text for people."""

    title: str
    value: Callable[[Row], Any]
    shown: Callable[[Row], str | Text] | None = None
    keep: bool = False  # never truncated
    right: bool = False
    spare: bool = False  # omitted on a narrow terminal
    time: bool = False  # on a terminal, relative to now

    @classmethod
    def plain(cls, *texts: str) -> list[Column]:
        """Return one column per text: `key` or `title=key`, and flags, such as `failed=failed_at:time,spare`.

        Without a title it is the key. The flags are keep, right, spare, time, and colored for a state.
        """
        found = []
        for text in texts:
            name, _, flags = text.partition(":")
            title, key = _title_and_key(name)
            words = dict.fromkeys(flags.split(",") if flags else (), True)
            shown = state if words.pop("colored", False) else None
            found.append(cls(title, itemgetter(key), shown, **words))
        return found


def on_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def console() -> Console:
    """Return a console for stdout."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not on_terminal())


@contextmanager
def working(words: str, *, is_shown: bool = True) -> Iterator[Callable[[str], None]]:
    """Show a spinner on a terminal. Yields a function that changes its text."""
    if not (is_shown and on_terminal()):
        yield lambda _: None
        return
    with console().status(words) as status:
        yield status.update


def say(*parts: str | Text | tuple[str, str], end: str = "\n") -> None:
    """Print one line; parts may be (text, style)."""
    from rich.text import Text

    console().print(Text.assemble(*parts), end=end, soft_wrap=True)


def warn(text: str) -> None:
    """Print a note to stderr."""
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble(("note:", "yellow"), f" {text}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(line)


def say_json(value: object) -> None:
    """Print a value as JSON."""
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def listing(
    rows: Sequence[Row],
    columns: Sequence[Column],
    *,
    nothing: str,
    as_json: bool = False,
    more: str | None = None,
    now: int = 0,
) -> None:
    """Print rows. `more` is the cursor of the next page; `nothing` is printed for an empty list."""
    if as_json:
        say_json({"items": rows, "next": more})
    elif not on_terminal():
        lines(rows, columns)
    elif not rows:
        say((nothing, "dim"))
    else:
        table(rows, columns, now)
        if more is not None:
            say((f"next page: --after {more}", "dim"))


def lines(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    """Print tab-separated lines under a heading."""
    print("\t".join(column.title.replace(" ", "_") for column in columns))
    for row in rows:
        print("\t".join(flat(column.value(row)) for column in columns))


def table(rows: Sequence[Row], columns: Sequence[Column], now: int) -> None:
    """Print aligned columns, one line per row, as wide as the terminal; times are relative to now."""
    from .table_layout import ColumnLayout, lay_out

    cells = [[quoted(_cell(column, row, now)) for column in columns] for row in rows]
    shapes = [ColumnLayout(column.title, column.keep, column.right, column.spare) for column in columns]
    terminal = console()
    for line in lay_out(shapes, cells, terminal.width):
        terminal.print(line, soft_wrap=True)


def fields(row: Row, *texts: str) -> list[Fact]:
    """Return facts for these texts, each `key` or `title=key`, or for all keys of a row."""
    return [(title, row[key], None) for title, key in map(_title_and_key, texts or row)]


def times(row: Row, timezone: Any, now: int, *texts: str) -> list[Fact]:
    """Return facts for times, each `key` or `title=key`."""
    return [(title, row[key], full_time(row[key], timezone, now)) for title, key in map(_title_and_key, texts)]


def _title_and_key(text: str) -> tuple[str, str]:
    title, _, key = text.rpartition("=")
    return title or key.replace("_", " "), key


def facts(pairs: Sequence[Fact]) -> None:
    """Print names and values of one item; a third part, if not None, replaces the value on a terminal."""
    if not on_terminal():
        for name, value, _ in pairs:
            print(f"{name.replace(' ', '_')}\t{flat(value)}")
        return
    from rich.table import Table

    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value, shown in pairs:
        text = readable(flat(value)) if shown is None else shown
        if text:
            grid.add_row(name, quoted(text))
    console().print(grid)


def flat(value: object) -> str:
    """Return a value on one line, without control characters."""
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
    """Return the colored state of a row; `?` marks a message whose delivery is uncertain."""
    from rich.text import Text

    word = row["state"]
    return Text(word, STATE_STYLES.get(word, "")) + (Text("?", "bold yellow") if row.get("unknown") else Text())


def relative_time(iso_time: str | None, now: int) -> str:
    """Return a time relative to now, such as 'in 3 min' or '2 h ago'."""
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
    """Return a time in full, with its distance from now."""
    if iso_time is None:
        return None
    from ..inputs.natural_times import describe_time
    from ..model.time import instant

    return describe_time(instant(datetime.fromisoformat(iso_time)), timezone, now=now)


def readable(text: str) -> str:
    """Return a text with readable times on a terminal; unchanged in a pipe."""
    if not on_terminal():
        return text
    return _INSTANT.sub(lambda found: f"{datetime.fromisoformat(found[0]):%a %d %b %Y %H:%M:%S} UTC", text)


def _cell(column: Column, row: Row, now: int) -> str | Text:
    value = column.value(row)
    if column.time:
        return relative_time(value, now)
    return column.shown(row) if column.shown else readable(flat(value))


def quoted(text: str | Text) -> Text:
    """Return a text that is not parsed as markup."""
    from rich.text import Text

    return Text(text) if isinstance(text, str) else text
