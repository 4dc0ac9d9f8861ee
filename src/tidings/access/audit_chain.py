"""Verification of the audit log's hash chain: no entry is missing or changed (tamper evidence).

Anyone who can write to the database can also compute a new chain. A head that was saved elsewhere detects
that, too: it names an entry and its hash, which must still be there.
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
MAX_PROBLEMS = 20
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class ChainVerification(NamedTuple):
    """The result. Keep a copy of `head` elsewhere; it is None for an empty log."""

    intact: bool
    lines: int  # verified entries
    problems: list[str]
    head: str | None
    pruned_until: str | None  # older entries were removed by retention


async def verify_chain(store: Store, *, head: str | None = None) -> ChainVerification:
    """Verify the whole chain; `head` is one that an earlier verification returned."""
    saved = None if head is None else parse_head(head)
    while True:
        chain = await _chain(store)
        if chain is None:
            problems = ["the end of the chain is missing"] if saved or await _is_begun(store) else []
            return ChainVerification(not problems, 0, problems, None, None)
        found = await _ChainVerifier(chain, saved).follow(store)
        again = await _chain(store)
        if again is not None and again["base_n"] == chain["base_n"]:  # otherwise entries were pruned meanwhile
            until = None if chain["base_at"] is None else iso(chain["base_at"])
            newest = f"{chain['n']}:{chain['hash']}"
            return ChainVerification(not found.problems, found.lines, found.problems, newest, until)


def parse_head(text: str) -> tuple[int, str]:
    """Parse a head as returned by `verify_chain`."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        remedy = "use the head of an earlier verification, such as 1238:0f3a... with 64 hexadecimal digits"
        raise Invalid(f"invalid head {text[:80]!r}", field="head", remedy=remedy)
    return int(found[1]), found[2]


async def _chain(store: Store) -> Row | None:
    rows = await store.read("audit_chain")
    return rows[0] if rows else None


async def _is_begun(store: Store) -> bool:
    """Return whether the latest entry is part of a chain."""
    newest = await store.read("audit_chain_newest")
    return bool(newest) and newest[0]["hash"] is not None


class _ChainVerifier:
    """One pass over the chain in constant memory."""

    def __init__(self, chain: Row, saved: tuple[int, str] | None) -> None:
        self._chain = chain
        self._saved = saved
        self._n: int = chain["base_n"]
        self._hash: str = chain["base_hash"]
        self.lines = 0
        self.problems: list[str] = []

    async def follow(self, store: Store) -> _ChainVerifier:
        """Verify every entry up to the chain's end."""
        last = self._chain["n"]
        while rows := await store.read("audit_chain_page", after=self._n, last=last, limit=PAGE):
            for row in rows:
                self._check(row)
        if self._n < last:
            self._add(f"entries {self._n + 1} to {last} are missing at the end")
        elif self._hash != self._chain["hash"]:
            self._add(f"the chain does not end with entry {last}")
        if self._saved is not None and self._saved[0] > last:
            self._add(f"the saved head is entry {self._saved[0]}, but the log ends with entry {last}")
        return self

    def _check(self, row: Row) -> None:
        n = row["n"]
        if n > self._n + 1:
            self._add(f"{_entries(self._n + 1, n - 1)} missing")
        content = [row[name] for name in AuditEntry._fields]
        text = f"{self._hash}|{n}|{row['at']}|{digest(content)}"
        if n == self._n + 1 and row["hash"] != hashlib.sha256(text.encode()).hexdigest():
            self._add(f"entry {n} was changed")
        self._n, self._hash = n, str(row["hash"])
        self.lines += 1
        if self._saved is not None and self._saved[0] == n and self._saved[1] != self._hash:
            self._add(f"entry {n} does not match the saved head")

    def _add(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def _entries(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"
