"""The ledger: one line per request, appended before the answer is sent.

Each line is one `write` in append mode, so lines of several processes never mix and a kill leaves whole lines
(a full disk may leave one torn line, which is closed off and skipped). The page cache keeps them when the
process is killed; there is no fsync, since the ledger is evidence for process crashes, not for power cuts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidings.model.errors import Misconfigured, StoreFull, StoreUnavailable, TidingsError
from tidings.model.time import SECOND, instant, moment

from .faults import DELIVERS, FaultKind

TAIL_BYTES = 4 * 1024 * 1024  # read back at start
MAX_TEXT = 4_000  # characters kept for display; the hash covers everything


_WRITTEN = (
    *("n", "time", "channel", "id", "attempt", "to", "hash", "sender", "did", "wait", "copy"),
    *("subject", "text", "data", "code"),
)


class SandboxEntry(NamedTuple):
    """One request and what was done with it. A named tuple: creating a frozen dataclass of this width takes
    longer than writing its line."""

    n: int  # number of the request and the receipt
    at: int  # microseconds since 1970, by the receiver's clock
    channel: str
    id: str
    to: str
    attempt: int
    did: FaultKind
    wait: float  # the delay if slow, the Retry-After if throttled
    copy: int  # number of this delivered copy: 2 and more are duplicates, 0 was not delivered
    hash: str
    sender: int | None = None
    text: str = ""
    subject: str = ""
    data: str = ""
    code: str = ""  # the provider's error code that was answered, if requested

    @property
    def delivered(self) -> bool:
        """Whether the recipient has it, whatever the sender was answered."""
        return self.did in DELIVERS

    @property
    def time(self) -> str:
        """The time in ISO 8601, with microseconds."""
        second, micros = divmod(self.at, SECOND)
        return f"{_second(second)}.{micros:06d}Z"

    def record(self) -> dict[str, object]:
        """Return the entry as the ledger and the API write it."""
        fields = {**self._asdict(), "time": self.time}
        return {name: fields[name] for name in _WRITTEN if name != "code" or self.code}


@lru_cache(maxsize=8)
def _second(second: int) -> str:
    """Format a second; cached, since formatting costs more than the write."""
    return moment(second * SECOND).strftime("%Y-%m-%dT%H:%M:%S")


def content_hash(text: str, subject: str | None = None, data: object = None) -> str:
    """Return the hash of the content alone, so all attempts of one message have the same hash."""
    content = {"data": data or None, "subject": subject or None, "text": text}
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def read_ledger(path: Path) -> Iterator[SandboxEntry]:
    """Yield every whole entry of a ledger, for comparison with the engine's records."""
    with path.open("rb") as file:
        for line in file:
            entry = _parse(line)
            if entry is not None:
                yield entry


class SandboxLedger:
    """The file, open for appending; without a path nothing is stored."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._fd: int | None = None
        self._torn = False
        if path is not None:
            self._fd, self._torn = _open(path)

    def append(self, entry: SandboxEntry) -> None:
        """Write one line; raises an error if that fails, and then nothing may be delivered."""
        if self._fd is None:
            return
        line = (b"\n" if self._torn else b"") + orjson.dumps(entry.record(), option=orjson.OPT_APPEND_NEWLINE)
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            raise self._failed(error) from error
        self._torn = written != len(line)
        if self._torn:
            raise self._failed(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def tail(self, limit: int = TAIL_BYTES) -> tuple[list[SandboxEntry], bool]:
        """Return the entries in the last `limit` bytes, oldest first, and whether that is the whole file."""
        if self.path is None:
            return [], True
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # One byte early, so that a line starting exactly at the limit is not mistaken for a torn one.
            file.seek(max(0, size - limit - 1))
            if size > limit:
                file.readline()
            entries = [entry for line in file if (entry := _parse(line)) is not None]
        return entries, size <= limit

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _failed(self, error: OSError) -> TidingsError:
        problem = f"The sandbox cannot write its ledger {self.path}: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull(problem, remedy="Free some space and send again; nothing was delivered")
        return StoreUnavailable(problem, remedy="Check the disk and send again; nothing was delivered")


def _open(path: Path) -> tuple[int, bool]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(fd).st_size
        return fd, size > 0 and os.pread(fd, 1, size - 1) != b"\n"
    except OSError as error:
        problem = f"The sandbox cannot open its ledger {path}: {error.strerror}"
        raise Misconfigured(problem, remedy="Use a file in a writable folder") from error


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("channel", "id", "to", "hash", "text", "subject", "data"), str),
    **dict.fromkeys(("n", "attempt", "copy"), int),
    **{"did": FaultKind, "wait": float},
}


def _parse(line: bytes) -> SandboxEntry | None:
    try:
        fields = orjson.loads(line)
        known: dict[str, Any] = {name: kind(fields[name]) for name, kind in _KINDS.items()}
        at = instant(datetime.fromisoformat(fields["time"]))
        return SandboxEntry(at=at, sender=fields["sender"], code=str(fields.get("code", "")), **known)
    except (KeyError, TypeError, ValueError):
        return None  # torn or foreign lines must not prevent a start
