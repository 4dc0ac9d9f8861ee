"""Shadow mode: compare what would have been sent with another sender's report. Pure.

Recipients are compared one at a time in constant memory: first equal records are paired, then different
contents at the same time, then equal contents at different times; the rest is on one side only.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from ...model.time import DAY, SECOND, iso, micros

_TIME = attrgetter("at")
MAX_TIME_GAP = DAY  # equal contents farther apart are different messages


class ShadowRecord(NamedTuple):
    """A message that one side sent, or would have sent."""

    at: int
    digest: str
    ref: str | None


class ShadowDifference(NamedTuple):
    """A difference; `kind` is one of DIFFERENCE_KINDS."""

    kind: str
    ours: ShadowRecord | None
    theirs: ShadowRecord | None

    @property
    def at(self) -> int:
        """The time on our side, or else on theirs."""
        record = self.ours or self.theirs
        assert record is not None
        return record.at

    def described(self, recipient: str) -> dict[str, Any]:
        """The difference as API fields."""
        apart = None if self.ours is None or self.theirs is None else abs(self.ours.at - self.theirs.at)
        return {
            "kind": self.kind,
            "to": recipient,
            "ours": _described(self.ours),
            "theirs": _described(self.theirs),
            "apart_s": None if apart is None else apart / SECOND,
        }


DIFFERENCE_KINDS = ("only_ours", "only_theirs", "other_content", "other_time")
"""On our side only; on theirs only; same time, different content; same content, different time."""


def content_digest(content: Mapping[str, Any]) -> str:
    """A digest of text, subject and data that ignores line endings and surrounding spaces."""
    said = {name: content[name] for name in ("text", "subject", "data") if content.get(name)}
    for name in ("text", "subject"):
        if name in said:
            said[name] = "\n".join(str(said[name]).split("\r\n")).strip()
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def compare_records(
    ours: Sequence[ShadowRecord], theirs: Sequence[ShadowRecord], tolerance: timedelta
) -> tuple[int, list[ShadowDifference]]:
    """Return the number of equal records and the differences; both sides are sorted, of one recipient."""
    near = micros(tolerance)
    far = max(near, MAX_TIME_GAP)
    same, ours, theirs = _pair(ours, theirs, near, alike=True)
    changed, ours, theirs = _pair(ours, theirs, near, alike=False)
    moved, ours, theirs = _pair(ours, theirs, far, alike=True)
    differences = [
        *(ShadowDifference("other_content", *pair) for pair in changed),
        *(ShadowDifference("other_time", *pair) for pair in moved),
        *(ShadowDifference("only_ours", one, None) for one in ours),
        *(ShadowDifference("only_theirs", None, one) for one in theirs),
    ]
    return len(same), sorted(differences, key=_TIME)


def _pair(
    ours: Sequence[ShadowRecord], theirs: Sequence[ShadowRecord], within: int, *, alike: bool
) -> tuple[list[tuple[ShadowRecord, ShadowRecord]], list[ShadowRecord], list[ShadowRecord]]:
    """Pair records by time and return the rest of each side; `alike` pairs only equal contents."""
    pairs: list[tuple[ShadowRecord, ShadowRecord]] = []
    left: tuple[list[ShadowRecord], list[ShadowRecord]] = ([], [])
    for mine, other in _groups(ours, theirs, alike=alike):
        i = j = 0
        while i < len(mine) and j < len(other):
            gap = mine[i].at - other[j].at
            if abs(gap) <= within:
                pairs.append((mine[i], other[j]))
                i, j = i + 1, j + 1
            elif gap < 0:
                left[0].append(mine[i])
                i += 1
            else:
                left[1].append(other[j])
                j += 1
        left[0].extend(mine[i:])
        left[1].extend(other[j:])
    return pairs, sorted(left[0], key=_TIME), sorted(left[1], key=_TIME)


def _groups(
    ours: Sequence[ShadowRecord], theirs: Sequence[ShadowRecord], *, alike: bool
) -> Iterator[tuple[Sequence[ShadowRecord], Sequence[ShadowRecord]]]:
    if not alike:
        yield ours, theirs
        return
    by_digest: dict[str, tuple[list[ShadowRecord], list[ShadowRecord]]] = defaultdict(lambda: ([], []))
    for side, sent in enumerate((ours, theirs)):
        for one in sent:
            by_digest[one.digest][side].append(one)
    yield from by_digest.values()


def _described(sent: ShadowRecord | None) -> dict[str, Any] | None:
    return None if sent is None else {"at": iso(sent.at), "ref": sent.ref, "digest": sent.digest}
