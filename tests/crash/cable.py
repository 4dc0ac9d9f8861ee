"""Two hosts with a cable between them: network namespaces of our own, which only root can make.

Services run on one, a worker on the other. With the cable unplugged nothing comes through and nobody is told;
what was sent meanwhile may still arrive when it is plugged in again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ADDRESS = "10.213.7.1"  # of the services, as the worker sees it; known to these two hosts only
_WORKER = "10.213.7.2"
_NAMESPACES = Path("/run/netns")


class Cable:
    """Made by `cable`."""

    def __init__(self, services: str, worker: str) -> None:
        self._services = services
        self._worker = worker

    @property
    def at_the_services(self) -> tuple[str, ...]:
        """What starts a command on that host."""
        return ("ip", "netns", "exec", self._services)

    @property
    def at_the_worker(self) -> str:
        """That host's network, which a process may enter."""
        return str(_NAMESPACES / self._worker)

    def unplug(self) -> None:
        """Nothing comes through from now on."""
        _ip("-n", self._services, "link", "set", "services", "down")

    def plug(self) -> None:
        """Everything does."""
        _ip("-n", self._services, "link", "set", "services", "up")


@contextlib.contextmanager
def cable() -> Iterator[Cable]:
    """Two hosts for the length of a test; skips where there can be none."""
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed: apt install iproute2")
    services, worker = names = (f"tidings-{os.getpid()}-s", f"tidings-{os.getpid()}-w")
    try:
        try:
            for name in names:
                _ip("netns", "add", name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network can be made here: {error.stderr.strip()}")
        ends = ("link", "add", "services", "netns", services, "type", "veth", "peer", "name", "worker")
        _ip(*ends, "netns", worker)
        for name, end, address in ((services, "services", ADDRESS), (worker, "worker", _WORKER)):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield Cable(services, worker)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
