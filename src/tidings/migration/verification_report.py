"""The result of a verification: counts, differences with reasons, pass or fail; as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from .mapping.mapped_record import FieldChange

LISTED = 1000  # differences kept per type; all are counted and reported


class DifferenceCode(StrEnum):
    """Why a record differs between source and target."""

    MISSING = "missing"  # not in the target
    DIFFERENT = "different"  # other values in the target
    DOUBLED = "doubled"  # more than once in the target
    EXTRA = "extra"  # in the target only
    DUPLICATE_KEY = "duplicate_key"  # two source records with one key
    WAITING = "waiting"  # for a parent that is not in the target
    REJECTED = "rejected"  # bad data, with the rule that refused it
    FAILED = "failed"  # all attempts used
    SKIPPED = "skipped"  # skipped by the map
    NOT_MIGRATED = "not_migrated"  # its type is not migrated by decision


EXPLAINED_CODES = frozenset({DifferenceCode.REJECTED, DifferenceCode.SKIPPED, DifferenceCode.NOT_MIGRATED})


class RecordDifference(NamedTuple):
    """One record that differs between source and target."""

    code: DifferenceCode
    type: str
    key: str
    source_id: str | None
    target_id: str | None
    reason: str
    explained: bool = False
    changes: Sequence[FieldChange] = ()

    def plainly(self) -> dict[str, Any]:
        return {**self._asdict(), "changes": [change._asdict() for change in self.changes]}

    def __str__(self) -> str:
        ids = f"source {self.source_id or '-'}, target {self.target_id or '-'}"
        fields = "".join(f"\n      {one.field}: {one.expected} → {one.found}" for one in self.changes)
        return f"{self.code}  {self.type} {self.key} ({ids}): {self.reason}{fields}"


@dataclass(slots=True)
class TypeVerification:
    """One record type. `groups` counts source, target and same by the field that the job names.

    `relations` counts the links of the records that should be in the target.
    """

    type: str
    source: int = 0
    target: int = 0
    same: int = 0
    counts: Counter[DifferenceCode] = field(default_factory=Counter)
    unexplained: int = 0
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    relations: dict[str, dict[str, int]] = field(default_factory=dict)  # links by field, in source and target
    listed: list[RecordDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def lost_links(self) -> int:
        """Return how many links of the source are missing in the target."""
        return sum(max(0, links["source"] - links["target"]) for links in self.relations.values())

    def tell(self, difference: RecordDifference) -> None:
        """Count a difference, and keep it while there is room."""
        self.counts[difference.code] += 1
        self.unexplained += not difference.explained
        if len(self.listed) < LISTED:
            self.listed.append(difference)

    def plainly(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "source": self.source,
            "target": self.target,
            "same": self.same,
            "counts": {str(code): count for code, count in sorted(self.counts.items())},
            "unexplained": self.unexplained,
            "groups": {name: dict(counts) for name, counts in sorted(self.groups.items())},
            "relations": {name: dict(counts) for name, counts in sorted(self.relations.items())},
            "differences": [one.plainly() for one in self.listed],
            "not_listed": self.counts.total() - len(self.listed),
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """A whole verification."""

    types: Sequence[TypeVerification]
    mapping_hash: str
    not_migrated: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)

    @property
    def unexplained(self) -> int:
        """Return the number of unexplained differences and lost links; zero passes."""
        return sum(max(one.unexplained, one.lost_links) for one in self.types)

    @property
    def passed(self) -> bool:
        """Return whether nothing is unexplained."""
        return self.unexplained == 0

    def plainly(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "unexplained": self.unexplained,
            "mapping_hash": self.mapping_hash,
            "types": [one.plainly() for one in self.types],
            "not_migrated": {
                name: {"reason": reason, "count": count} for name, (reason, count) in self.not_migrated.items()
            },
        }

    def text(self, *, most: int | None = None) -> str:
        """Return it as text, with up to `most` differences per type."""
        return "\n".join(self._lines(most))

    def _lines(self, most: int | None) -> Iterator[str]:
        yield ("passed: nothing unexplained" if self.passed else f"NOT passed: {self.unexplained:,} unexplained")
        yield f"map {self.mapping_hash}"
        for one in self.types:
            counts = "".join(f", {count:,} {code}" for code, count in sorted(one.counts.items()))
            yield f"{one.type}: source {one.source:,}, target {one.target:,}, same {one.same:,}{counts}"
            yield from (f"    note: {note}" for note in one.notes)
            for name, links in sorted(one.relations.items()):
                lost = max(0, links["source"] - links["target"])
                numbers = f"source {links['source']:,}, target {links['target']:,}"
                yield f"    relation {name}: {numbers}{f', {lost:,} lost' if lost else ''}"
            for name, group in sorted(one.groups.items()):
                numbers = ", ".join(f"{what} {group[what]:,}" for what in ("source", "target", "same"))
                yield f"    {name}: {numbers}"
            listed = one.listed[:most]
            yield from (f"    {difference}" for difference in listed)
            if left := one.counts.total() - len(listed):
                yield f"    ... and {left:,} more"
        for name, (reason, count) in self.not_migrated.items():
            yield f"{name}: not migrated by decision ({'?' if count is None else f'{count:,}'}): {reason}"
