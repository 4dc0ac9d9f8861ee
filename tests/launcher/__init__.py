"""A quick `tidings` for tests that type many commands: loaded once, and forked for each command.

What runs is the real program in a process of its own, with the caller's arguments, folder, environment and
streams; only loading it is saved. Signals are passed on, and whoever kills the launcher kills the command.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def launcher(folder: Path) -> Iterator[Path]:
    """Gives a folder for the front of PATH, with `tidings` in it."""
    folder.mkdir(parents=True)
    address = folder / "socket"
    script = folder / "tidings"
    code = (HERE / "client.py").read_text(encoding="utf-8")
    script.write_text(f"#!{sys.executable} -IS\nADDRESS = {str(address)!r}\n{code}", encoding="utf-8")
    script.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(address)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        yield folder
    finally:
        assert server.stdin is not None
        server.stdin.close()  # it ends with us, whatever becomes of us
        server.wait(10)
