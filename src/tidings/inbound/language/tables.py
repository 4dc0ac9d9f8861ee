"""The tables of patterns and words: rewrites.tsv, phrases.tsv, moods.tsv and words.tsv.

A line has fields separated by tabs. The first one names its group, the last one is a pattern or a list of words.
`{NAME}` in a pattern stands for an earlier line of the table: `piece`, the name and its pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

_PIECE = re.compile(r"\{([A-Z_]+)\}")


@lru_cache(4)
def rows(file: str) -> list[tuple[str, ...]]:
    """Return the lines of a table, in order, with the pieces filled in."""
    pieces: dict[str, str] = {}
    found: list[tuple[str, ...]] = []
    for line in resources.files(__package__).joinpath(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        *fields, pattern = line.split("\t")
        pattern = _PIECE.sub(lambda piece: pieces[piece[1]], pattern)
        if fields[0] == "piece":
            pieces[fields[1]] = pattern
        else:
            found.append((*fields, pattern))
    return found


def rewrites(group: str) -> tuple[tuple[str, str], ...]:
    """Return the patterns of a group of rewrites with their replacements, in order."""
    return tuple((pattern, full) for of, full, pattern in rows("rewrites.tsv") if of == group)


def alternatives(mood: str) -> str:
    """Return the alternatives of a mood as one expression."""
    return "|".join(pattern for of, pattern in rows("moods.tsv") if of == mood)


def words(group: str) -> frozenset[str]:
    return frozenset(word for of, line in rows("words.tsv") if of == group for word in line.split())
