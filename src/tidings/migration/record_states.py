"""States of a migrated record."""

from __future__ import annotations

from enum import StrEnum


class RecordState(StrEnum):
    """The state of a record. The last six are final."""

    EXTRACTED = "extracted"  # read from the source
    READY = "ready"  # mapped and checked, may be written
    WAITING = "waiting"  # for a parent that is not in the target yet
    CLAIMED = "claimed"  # about to be written: after a crash its outcome is unknown
    UNKNOWN = "unknown"  # perhaps written; only a lookup in the target resolves it
    WRITTEN = "written"
    UNCHANGED = "unchanged"  # equal in the target
    REJECTED = "rejected"  # bad data: repaired and replayed, or given up
    FAILED = "failed"  # all attempts used
    SKIPPED = "skipped"  # by the map or by an undo
    CONFLICT = "conflict"  # a person decides


FINAL_STATES = frozenset(list(RecordState)[5:])
