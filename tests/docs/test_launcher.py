"""The quick `tidings` of these tests behaves as the real one: what it gets, how it ends, who can end it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ..launcher import ForkServer


def test_a_command_gets_all_that_is_its_callers_and_ends_as_it_would(tmp_path: Path) -> None:
    """Arguments (an empty one, too), folder, environment, streams, exit code, and kill -9."""
    with ForkServer(tmp_path / "bin") as server:
        command = str(server.folder / "tidings")
        wrong = subprocess.run(
            [command, "messages", "show", ""], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        database = f"sqlite:///{tmp_path}/mine.db"
        env = {**os.environ, "TIDINGS_DATABASE": database, "TIDINGS_PORT": "0", "TIDINGS_SANDBOX_PORT": "0"}
        served = subprocess.Popen(
            [command, "serve"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert served.stdout is not None
        said = b"".join(iter(served.stdout.readline, b"  Press Ctrl-C to stop.\n")).decode()
        served.kill()

        assert wrong.returncode == 2 and "there is no message" in wrong.stderr
        assert "mine.db" in said
        assert served.wait(5) == -signal.SIGKILL
        assert not served.stdout.read(), "its end of the pipe is still open: the command lives on"
        assert (tmp_path / "mine.db").exists()


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command(tmp_path: Path, asked: signal.Signals) -> None:
    """It stops in order."""
    with ForkServer(tmp_path / "bin") as server:
        env = {**os.environ, "TIDINGS_PORT": "0", "TIDINGS_SANDBOX_PORT": "0"}
        served = subprocess.Popen(
            [str(server.folder / "tidings"), "serve"], cwd=tmp_path, env=env, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert served.stdout is not None
        list(iter(served.stdout.readline, b"  Press Ctrl-C to stop.\n"))
        served.send_signal(asked)

        assert served.wait(20) == 0
        assert served.stdout.read().endswith(b"Stopped.\n")
