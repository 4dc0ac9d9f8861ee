"""The table of rewrites (rewrites.tsv).

A line has a group, the replacement and a pattern, in the order in which they are tried. `{NAME}` in a pattern
stands for a piece that the calling module provides.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

FILE = "rewrites.tsv"
_PIECE = re.compile(r"\{([A-Z_]+)\}")


def group(name: str, **pieces: str) -> tuple[tuple[str, str], ...]:
    """Return the patterns of a group with their replacements, in order."""
    lines = (line.split("\t") for line in _lines())
    return tuple(
        (_PIECE.sub(lambda found: pieces[found[1]], pattern), full) for of, full, pattern in lines if of == name
    )


@lru_cache(1)
def _lines() -> list[str]:
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]
