"""The pages as data: headings, tables, fenced blocks, links. Only as much Markdown as we write ourselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(?P<words>[^\n`]*)\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """One fenced block: the words after its fence, its text, and the line it begins on."""

    words: tuple[str, ...]
    text: str
    line: int


def page(name: str) -> str:
    """A page of docs/ as text."""
    return (DOCS / name).read_text(encoding="utf-8")


def every_page() -> Iterator[Path]:
    """All Markdown that a reader may meet."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in (DOCS, ROOT / "examples"):
        yield from sorted(folder.rglob("*.md"))


def blocks(text: str) -> list[Block]:
    """Fenced blocks, in order."""
    return [
        Block(tuple(found["words"].split()), found["text"], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def prose(text: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Where the links of a page point."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(text)))


def anchors(text: str) -> set[str]:
    """What a link may name after #, as the usual sites make it from headings."""
    return {_slug(heading) for _, heading in _HEADING.findall(prose(text))}


def sections(text: str) -> dict[str, str]:
    """Heading (without its back-quotes) to the text below it, up to the next heading of any level."""
    bare = prose(text)
    found = list(_HEADING.finditer(bare))
    ends = [*(heading.start() for heading in found[1:]), len(bare)]
    return {heading[2].replace("`", ""): bare[heading.end() : end] for heading, end in zip(found, ends, strict=True)}


def tables(text: str) -> list[dict[str, str]]:
    """Every row of every table, by the heads of its columns; cells as they were written."""
    rows: list[dict[str, str]] = []
    heads: list[str] = []
    for line in prose(text).splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not heads:
            heads = cells
        elif not all(set(cell) <= set("-: ") for cell in cells):
            rows.append(dict(zip(heads, cells, strict=True)))
    return rows


def named(text: str, head: str) -> dict[str, dict[str, str]]:
    """Rows by the code in the column of that head; rows of other tables are left out."""
    return {code(row[head]): row for row in tables(text) if head in row}


def code(cell: str) -> str:
    """What stands between the first back-quotes of a cell, or the cell itself."""
    found = _CODE.search(cell)
    return found[1] if found else cell


def codes(text: str) -> set[str]:
    """Everything that stands between back-quotes."""
    return set(_CODE.findall(text))


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
