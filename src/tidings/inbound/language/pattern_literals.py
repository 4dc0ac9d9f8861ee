"""Literals that a text must contain for a pattern to match: a cheap prefilter.

Most patterns contain words that a line does not have. The literals come from Python's own parse of the
pattern; if they cannot be determined, the pattern is always tried.
"""

from __future__ import annotations

import re
import re._constants as code  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_MOST = 12  # literals; searching for more is no cheaper than matching

Pieces = frozenset[str]


def required_literals(pattern: str) -> tuple[str, ...]:
    """Return literals, one of which is in every text that the pattern matches; empty if unknown."""
    try:
        tree = parser.parse(pattern)
    except re.error:
        return ()
    if tree.state.flags & ~re.UNICODE:
        return ()  # a flag may change what a letter matches
    found = _of_all(tree)
    return () if found is None or len(found) > _MOST else tuple(sorted(found))


def _of_all(tree: Any) -> Pieces | None:
    """Return the best literals of a sequence."""
    best: Pieces | None = None
    letters = ""
    for kind, what in tree:
        if kind is code.LITERAL:
            letters += chr(what)
            continue
        for pieces in (_piece(letters), _of(kind, what)):
            best = _better(best, pieces)
        letters = ""
    return _better(best, _piece(letters))


def _of(kind: Any, what: Any) -> Pieces | None:
    if kind is code.SUBPATTERN:
        _, add, remove, inner = what
        return None if add or remove else _of_all(inner)
    if kind is code.BRANCH:
        each = [_of_all(branch) for branch in what[1]]
        return None if None in each else frozenset[str]().union(*[one for one in each if one is not None])
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT) and what[0] > 0:
        return _of_all(what[2])
    return None


def _piece(letters: str) -> Pieces | None:
    return frozenset({letters}) if letters else None


def _better(one: Pieces | None, other: Pieces | None) -> Pieces | None:
    """Prefer longer literals, which are rarer, then fewer."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=lambda pieces: (min(map(len, pieces)), -len(pieces)))
