"""How much of the machine others used while we measured.

Foreign share = (all busy CPU time - that of this process and its descendants, the database server among them)
/ (elapsed * cores). Time stolen by the hypervisor counts as
foreign. A run with a high share says little; the table prints it beside each figure.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

_TICK = os.sysconf("SC_CLK_TCK")


class Noise:
    """A context that knows, after its end, the `share` of CPU used by anybody else."""

    def __init__(self) -> None:
        self.share = 0.0

    def __enter__(self) -> Noise:
        self._start = time.monotonic(), _busy(), _used(os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        began, busy, used = self._start
        elapsed = (time.monotonic() - began) * (os.cpu_count() or 1)
        foreign = (_busy() - busy) - (_used(os.getpid()) - used)
        self.share = round(min(1.0, max(0.0, foreign / elapsed)), 2) if elapsed else 0.0


def wait_for_quiet(most: float, share: float = 0.1, over: float = 0.5) -> None:
    """Wait until others use less than this share of the CPU, but no longer than so many seconds."""
    until = time.monotonic() + most
    while time.monotonic() < until:
        with Noise() as noise:
            time.sleep(over)
        if noise.share < share:
            return


def cpu_of_family() -> float:
    """CPU seconds of this process and all that descend from it, a database server among them."""
    return _used(os.getpid())


def _busy() -> float:
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICK


def _used(root: int) -> float:
    """CPU seconds of a process and all that descend from it, the ended ones (reaped) included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))  # own and reaped children's, user and system
    return sum(count for pid, count in ticks.items() if _descends(pid, root, parents)) / _TICK


def _descends(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid not in (0, root):
        pid = parents.get(pid, 0)
    return pid == root
