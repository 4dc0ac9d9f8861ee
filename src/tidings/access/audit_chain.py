"""Verification of the audit trail: every line is there and says what it said when it was written.

Anyone who can write to the database can also compute a new chain. A head that was noted elsewhere shows that,
too: it names a line and its hash, which must still be there.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from ..model.errors import Invalid
from ..model.time import iso
from ..store.port import Row, Store
from .audit import AuditEntry, digest

PAGE = 1000
MOST_PROBLEMS = 20
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class ChainVerification(NamedTuple):
    """What was found. Keep a copy of `head` elsewhere; it is None for an empty trail."""

    intact: bool
    lines: int  # that were verified
    problems: list[str]
    head: str | None
    pruned_until: str | None  # lines up to then are gone by retention


async def verify_chain(store: Store, *, head: str | None = None) -> ChainVerification:
    """Follow the chain from its beginning to its end; `head` is one that was noted before."""
    noted = None if head is None else parse_head(head)
    while True:
        chain = await _chain(store)
        if chain is None:
            problems = ["the end of the chain is missing"] if noted or await _is_begun(store) else []
            return ChainVerification(not problems, 0, problems, None, None)
        found = await _ChainVerifier(chain, noted).follow(store)
        again = await _chain(store)
        if again is not None and again["base_n"] == chain["base_n"]:  # otherwise lines were pruned meanwhile
            until = None if chain["base_at"] is None else iso(chain["base_at"])
            newest = f"{chain['n']}:{chain['hash']}"
            return ChainVerification(not found.problems, found.lines, found.problems, newest, until)


def parse_head(text: str) -> tuple[int, str]:
    """A head as `verify_chain` shows it."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        remedy = "use what an earlier verification showed, such as 1238:0f3a... with 64 hexadecimal digits"
        raise Invalid(f"the head {text[:80]!r} cannot be read", field="head", remedy=remedy)
    return int(found[1]), found[2]


async def _chain(store: Store) -> Row | None:
    rows = await store.read("audit_chain")
    return rows[0] if rows else None


async def _is_begun(store: Store) -> bool:
    """Whether the newest line is part of a chain; lines from before the first release with one are not."""
    newest = await store.read("audit_chain_newest")
    return bool(newest) and newest[0]["hash"] is not None


class _ChainVerifier:
    """One way along the chain. Memory stays flat: only the hash of the noted line is kept."""

    def __init__(self, chain: Row, noted: tuple[int, str] | None) -> None:
        self._chain = chain
        self._noted = noted
        self._n: int = chain["base_n"]
        self._hash: str = chain["base_hash"]
        self.lines = 0
        self.problems: list[str] = []

    async def follow(self, store: Store) -> _ChainVerifier:
        """Verify every line up to the chain's end."""
        last = self._chain["n"]
        while rows := await store.read("audit_chain_page", after=self._n, last=last, limit=PAGE):
            for row in rows:
                self._check(row)
        if self._n < last:
            self._add(f"lines {self._n + 1} to {last} are missing at the end")
        elif self._hash != self._chain["hash"]:
            self._add(f"the chain does not end with line {last}")
        if self._noted is not None and self._noted[0] > last:
            self._add(f"line {self._noted[0]} was noted, but the trail ends with line {last}")
        return self

    def _check(self, row: Row) -> None:
        n = row["n"]
        if n > self._n + 1:
            self._add(f"{_lines(self._n + 1, n - 1)} missing")
        content = [row[name] for name in AuditEntry._fields]
        text = f"{self._hash}|{n}|{row['at']}|{digest(content)}"
        if n == self._n + 1 and row["hash"] != hashlib.sha256(text.encode()).hexdigest():
            self._add(f"line {n} was changed")
        self._n, self._hash = n, str(row["hash"])
        self.lines += 1
        if self._noted is not None and self._noted[0] == n and self._noted[1] != self._hash:
            self._add(f"line {n} is not the one that was noted")

    def _add(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def _lines(first: int, last: int) -> str:
    return f"line {first} is" if first == last else f"lines {first} to {last} are"
