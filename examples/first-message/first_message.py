"""The first message: send it, kill the engine with -9, start it again, and see it arrive once.

Everything goes through the command `tidings`, in a temporary folder and on free ports. The proof is not the
engine's own word but the ledger of the simulated phone, which writes down every request it gets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIDINGS = (sys.executable, "-m", "tidings.cli")
PATIENCE = 30  # seconds


def main() -> int:
    """Tell the story; 0 when the message arrived exactly once."""
    with tempfile.TemporaryDirectory(prefix="first-message-") as place:
        folder = Path(place)
        with engine(folder) as first:
            print("The engine runs.")
            answer = tidings(folder, "send", "-c", "phone", "--to", "ada", "-t", "Hello", "--in", "4s")
            id_ = answer.split()[0]
            print(f"Accepted for four seconds from now: {id_}")
            first.kill()
            first.wait()
            print("The engine was killed with -9. The message waits in the database:")
            print("  " + tidings(folder, "messages", "why", id_))
        with engine(folder):
            print("The engine runs again.")
            print("  " + outcome(folder, id_))
        copies = arrivals(folder, id_)
        print(f"The phone got it {copies} time{'s' if copies != 1 else ''}.")
        return 0 if copies == 1 else 1


@contextmanager
def engine(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`tidings serve`, from the moment it says that it is ready; gone when the block ends."""
    process = subprocess.Popen(
        [*TIDINGS, "serve", "--port", "0"], cwd=folder, env=surroundings(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        if not any("Ctrl-C to stop" in line for line in process.stdout):
            raise RuntimeError("tidings serve did not start; run it by hand to see why")
        yield process
    finally:
        process.kill()
        process.wait()


def tidings(folder: Path, *words: str) -> str:
    """One command, and what it said."""
    done = subprocess.run(
        [*TIDINGS, *words], cwd=folder, env=surroundings(), text=True, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.strip()


def outcome(folder: Path, id_: str) -> str:
    """Ask every now and then until the message is sent; gives what the engine says of it."""
    give_up = time.monotonic() + PATIENCE
    while True:
        message = json.loads(tidings(folder, "messages", "show", id_, "--json"))
        if message["state"] == "sent":
            return str(message["why"])
        if time.monotonic() > give_up:
            raise RuntimeError(f"not sent within {PATIENCE} s: {message['why']}")
        time.sleep(0.2)


def arrivals(folder: Path, id_: str) -> int:
    """How often the simulated phone got it."""
    lines = (folder / "data" / "sandbox.jsonl").read_text().splitlines()
    return sum(entry["id"] == id_ and entry["copy"] > 0 for entry in map(json.loads, lines))


def surroundings() -> dict[str, str]:
    """Our environment without Tidings settings; the phone takes any free port."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {**clean, "TIDINGS_SANDBOX_PORT": "0"}


if __name__ == "__main__":
    sys.exit(main())
