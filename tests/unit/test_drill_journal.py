"""Logs of a drill survive the death of a process that writes them."""

from __future__ import annotations

from pathlib import Path

from tidings.drill.json_log import JsonLog, LogTail, read_log


def test_a_line_torn_by_a_kill_is_skipped_and_the_next_writer_begins_a_new_one(tmp_path: Path) -> None:
    """The kernel ends a write at a page boundary when its process is killed."""
    log = tmp_path / "log.jsonl"
    killed, survivor = JsonLog(log), JsonLog(log)
    killed.write({"ref": "a"}, {"ref": "b"})
    torn = log.read_bytes()[:-4]
    log.write_bytes(torn)

    survivor.write({"ref": "c"})

    assert list(read_log(log)) == [{"ref": "a"}, {"ref": "c"}]
    assert LogTail(log).count() == 2
