"""Runs the marked blocks of a page, in order, in one shell and one empty folder.

The word after the language says what happens to a block:

    sh run          typed into the shell; a command that fails fails the page
    sh serve        started in the background; the page goes on when its port answers (the page's own, that
                    of --port, or a number among the words)
    python run      run by this Python
    toml tidings.toml (any language, then a file's name)    written to that file

`postgres` as a further word leaves the block out where there is no server. Ports and the PostgreSQL address
that the pages show are replaced by free ones, so pages can be run side by side.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tidings.testing.watchdog import Watchdog

from .pages import Block, blocks

SHOWN_PORTS = ("8020", "8021", "8025", "8080")
SHOWN_POSTGRES = "postgresql://tidings@localhost/tidings"
PATIENCE = 360

_OPENING = """set -eu -o pipefail
read -r go  # once the watchdog is set up; the end of the input if this process died before
exec </dev/null
await() {  # until a port answers ($2 = yes) or does not answer any more ($2 = no)
  for _ in $(seq 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then is=yes; else is=no; fi
    if [ "$is" = "$2" ]; then return 0; fi
    sleep 0.1
  done
  echo "port $1: waited in vain for $2" >&2
  cat serve-*.log >&2
  return 1
}
ready() {  # until an engine says that all its ports answer
  for _ in $(seq 1200); do
    if grep -q "Ctrl-C to stop" "$1"; then return 0; fi
    sleep 0.1
  done
  echo "it never got ready" >&2
  cat "$1" >&2
  return 1
}
joined() {  # until an engine works; one that only stands by never does
  for _ in $(seq 30); do
    if grep -q node_joined "$1"; then return 0; fi
    sleep 0.1
  done
}
"""


def runnable(text: str) -> list[Block]:
    """The blocks of a page that ask to be run."""
    return [block for block in blocks(text) if len(block.words) > 1]


def needs_postgres(text: str) -> bool:
    """Whether some of them want a server."""
    return any("postgres" in block.words for block in runnable(text))


def run_page(text: str, folder: Path, *, postgres: str | None, programs: Path) -> subprocess.CompletedProcess[str]:
    """Run a page to its end, with what is in `programs` first on the path.

    Everything it started is ended with it, and nothing else; a watchdog does it if this process is killed.
    """
    ports = {port: str(_free_port()) for port in SHOWN_PORTS}
    phone = _free_port(neighbor=True)  # the simulated mail server listens on the port after the phone's
    ports |= {"8025": str(phone), "8026": str(phone + 1)}
    shown = {**ports, SHOWN_POSTGRES: postgres or SHOWN_POSTGRES}
    wanted = [block for block in runnable(text) if postgres or "postgres" not in block.words]
    script = _OPENING + "\n".join(_step(block, shown) for block in wanted)
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=_environment(ports, folder, programs), start_new_session=True,
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    watchdog = Watchdog()
    watchdog.watch(group=shell.pid)
    try:
        said, complained = shell.communicate("go\n", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        said, complained = shell.communicate()
        complained += f"\nnot over after {PATIENCE} s"
    finally:
        _end_group(shell.pid)
        watchdog.release()
    return subprocess.CompletedProcess(script, shell.returncode, said, complained)


def _step(block: Block, shown: Mapping[str, str]) -> str:
    text = block.text
    for old, new in shown.items():
        text = re.sub(rf"(?<![\d.]){re.escape(old)}(?!\d)", new, text)
    told = f"echo '--- line {block.line}' >&2\n"
    match block.words[:2]:
        case ("sh", "run"):
            return told + text
        case ("sh", "serve"):
            asked = re.search(r"--port (\d+)", text)
            named = next((word for word in block.words if word.isdigit()), "8020")
            port = asked[1] if asked else shown[named]
            begin = f"( {text.rstrip()} ) >serve-{block.line}.log 2>&1 </dev/null &\ndisown"
            log = f"serve-{block.line}.log"
            works = f"ready {log}\njoined {log}\n" if "tidings serve" in text else ""
            return f"{told}await {port} no\n{begin}\nawait {port} yes\n{works}"
        case ("python", "run"):
            return f"{told}{shlex.quote(sys.executable)} - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK\n"
        case (_, name):
            return f"{told}cat > {shlex.quote(name)} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK\n"
    raise AssertionError(block)


def _environment(ports: Mapping[str, str], folder: Path, programs: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {
        **clean,
        "PATH": os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"])),
        "TIDINGS_PORT": ports["8020"],
        "TIDINGS_SANDBOX_PORT": ports["8025"],
        "HOME": str(folder),
    }


def _free_port(*, neighbor: bool = False) -> int:
    """Return a free port; with `neighbor` the next one is free, too."""
    while True:
        with socket.socket() as probe, socket.socket() as following:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
            if not neighbor:
                return port
            with contextlib.suppress(OSError, OverflowError):
                following.bind(("127.0.0.1", port + 1))
                return port


def _end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
