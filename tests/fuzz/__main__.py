"""`make fuzz`: made-up calls of every route, and ten minutes of made-up bytes for whoever needs no key.

On both databases; any finding fails it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.testing import PostgresCluster

from .broker import READERS, broken_by_broker_messages
from .served import engine, fill, fuzz, troubles
from .unauthenticated import attack


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    """A SQLite file, and a PostgreSQL of its own where there is one."""
    found = {"SQLite": f"sqlite:///{folder}/tidings.db"}
    if PostgresCluster.find() is None:
        print("No PostgreSQL: only SQLite is tried.")
        yield found
        return
    folder.chmod(0o755)  # root's server runs as nobody
    with PostgresCluster(folder / "postgres") as cluster:
        yield {**found, "PostgreSQL": cluster.create_database("fuzz")}


def main() -> int:
    """One run on each database; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=5, help="at most so many of each route and phase")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600, help="so long without a key, over all databases")
    given = parser.parse_args()
    code = 0
    for kind in READERS:
        broken = broken_by_broker_messages(kind, cases=100_000, seed=given.seed)
        print(f"\n== broker messages: {kind}", *broken[:20], sep="\n")
        code = code or bool(broken)
    with tempfile.TemporaryDirectory(prefix="tidings-fuzz-") as name, databases(Path(name)) as found:
        for database, url in found.items():
            folder = Path(name) / database
            folder.mkdir()
            with engine(folder, url) as (address, logged):
                words = ("--max-examples", str(given.cases), "--seed", str(given.seed), "--continue-on-failure")
                done = fuzz(address, folder, fill(address), *words)
            wrong = troubles(logged)
            print(f"\n== {database}\n{done.stdout}", *wrong, sep="\n")
            code = code or done.returncode or bool(wrong)
            share = given.seconds / len(found)
            seen, complaints = asyncio.run(attack(folder, url, seconds=share, seed=given.seed))
            print(f"\n== {database}, without a key\n{seen}", *seen.problems, *complaints, sep="\n")
            code = code or bool(seen.problems or complaints)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
