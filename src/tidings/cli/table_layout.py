"""Column widths of tables on a terminal.

On a narrow terminal the spare columns are omitted first; then the last column is truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

GAP = 2
WIDEST = 28  # of a column that may be truncated
NARROWEST = 12  # of the last column


class ColumnLayout(NamedTuple):
    """The layout of one column."""

    title: str
    keep: bool = False  # never truncated
    right: bool = False
    spare: bool = False  # omitted on a narrow terminal


def lay_out(shapes: Sequence[ColumnLayout], cells: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """Return the heading and one line per row."""
    widths = [_width(shape, [row[place] for row in cells]) for place, shape in enumerate(shapes)]
    widths[-1] = max(len(shapes[-1].title), *(row[-1].cell_len for row in cells), 0)
    places = _fitting(shapes, widths, width)
    room = width - sum(widths[place] + GAP for place in places[:-1])
    if not shapes[-1].keep:
        widths[-1] = min(widths[-1], max(room, NARROWEST))
    heading = [Text(shape.title, "dim") for shape in shapes]
    return [_line(row, shapes, widths, places) for row in (heading, *cells)]


def _width(shape: ColumnLayout, column: Sequence[Text]) -> int:
    widest = max(len(shape.title), *(cell.cell_len for cell in column), 0)
    return widest if shape.keep else min(widest, WIDEST)


def _fitting(shapes: Sequence[ColumnLayout], widths: Sequence[int], width: int) -> list[int]:
    """Return the columns that fit; the last one may shrink to NARROWEST."""
    places = list(range(len(shapes)))
    for spare in [place for place in reversed(places) if shapes[place].spare]:
        needed = sum(widths[place] + GAP for place in places[:-1]) + min(widths[-1], NARROWEST)
        if needed <= width:
            break
        places.remove(spare)
    return places


def _line(row: Sequence[Text], shapes: Sequence[ColumnLayout], widths: Sequence[int], places: Sequence[int]) -> Text:
    line = Text()
    for place in places:
        cell = row[place].copy()
        cell.truncate(widths[place], overflow="ellipsis")
        padding = " " * (widths[place] - cell.cell_len)
        line += Text(padding) + cell if shapes[place].right else cell + Text(padding)
        line += Text(" " * GAP)
    line.rstrip()
    return line
