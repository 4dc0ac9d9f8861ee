"""What a disk holds after a power cut, rebuilt from a trace of a process's writes.

A write is on the disk for sure only when its file was synced after it. Of the writes since then a cut leaves
none, or any of them in any order.
"""

from __future__ import annotations

import math
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_CALL = re.compile(r"(?P<thread>\d+) +(?P<at>[\d.]+) (?P<call>\w+)\(\d+<(?P<path>[^>]*)>(?P<rest>.*)")
_RESUMED = re.compile(r"(?P<thread>\d+) +(?P<at>[\d.]+) <\.\.\. \w+ resumed>\)? += (?P<result>-?\d+)")
_WRITTEN = re.compile(r', "(?P<data>[^"]*)", \d+, (?P<place>\d+)')

CALLS = "pwrite64,fdatasync,fsync,ftruncate"


class Write(NamedTuple):
    """Bytes at a place of a file; None cuts the file off there."""

    place: int
    data: bytes | None


class Cut(NamedTuple):
    """The moment before a call: what is safe in each file, and what is loose."""

    at: float
    safe: Mapping[str, Sequence[Write]]
    loose: Mapping[str, Sequence[Write]]


def traced(command: Sequence[str], log: Path) -> list[str]:
    """The command, with its writes told in a log."""
    form = ["-f", "-qq", "--seccomp-bpf", "-ttt", "-y", "-xx", "-s", "100000"]
    return ["strace", *form, "-e", f"trace={CALLS}", "-o", str(log), *command]


def cuts(log: Path, file: Path) -> Iterator[Cut]:
    """One before every sync of a database or its log, and one at the end."""
    wanted = {str(file), f"{file}-wal"}
    safe: defaultdict[str, list[Write]] = defaultdict(list)
    loose: defaultdict[str, list[Write]] = defaultdict(list)
    under_way: dict[str, str] = {}  # the file that a thread is syncing
    for line in log.read_text(encoding="ascii").splitlines():
        if (back := _RESUMED.match(line)) and back["thread"] in under_way:
            path = under_way.pop(back["thread"])
            safe[path] += loose.pop(path, []) if back["result"] == "0" else []
        elif (found := _CALL.match(line)) and (path := _text(found["path"])) in wanted:
            if not found["call"].endswith("sync"):
                loose[path].append(_write(found["call"], found["rest"]))
                continue
            yield _cut(float(found["at"]), safe, loose)
            if "unfinished" in found["rest"]:
                under_way[found["thread"]] = path
            elif found["rest"].endswith("= 0"):
                safe[path] += loose.pop(path, [])
    yield _cut(math.inf, safe, loose)


def _cut(at: float, safe: Mapping[str, Sequence[Write]], loose: Mapping[str, Sequence[Write]]) -> Cut:
    return Cut(at, *({path: tuple(writes) for path, writes in each.items()} for each in (safe, loose)))


def restore(cut: Cut, folder: Path, chance: random.Random | None = None) -> None:
    """The files as the disk has them: what is safe, and with `chance` some of what is loose."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in {*cut.safe, *cut.loose}:
        more = [write for write in cut.loose.get(path, ()) if chance and chance.random() < 0.5]
        content = bytearray()
        for write in (*cut.safe.get(path, ()), *more):
            if write.data is None:
                del content[write.place :]
                continue
            content.extend(bytes(max(0, write.place - len(content))))
            content[write.place : write.place + len(write.data)] = write.data
        (folder / Path(path).name).write_bytes(content)


def _write(call: str, rest: str) -> Write:
    if call == "ftruncate":
        length = re.match(r", (\d+)", rest)
        assert length, f"a truncation that cannot be read: {rest[-60:]}"
        return Write(int(length[1]), None)
    found = _WRITTEN.match(rest)
    assert found, f"a write that cannot be read: {rest[-60:]}"
    return Write(int(found["place"]), bytes.fromhex(found["data"].replace("\\x", "")))


def _text(escaped: str) -> str:
    return bytes.fromhex(escaped.replace("\\x", "")).decode()
