"""`make fuzz`: thousands of made-up calls of every route, on both databases; any finding fails it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.testing import Cluster

from .served import engine, fill, fuzz, troubles


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    """A SQLite file, and a PostgreSQL of its own where there is one."""
    found = {"SQLite": f"sqlite:///{folder}/tidings.db"}
    if Cluster.find() is None:
        print("No PostgreSQL: only SQLite is tried.")
        yield found
        return
    folder.chmod(0o755)  # root's server runs as nobody
    with Cluster(folder / "postgres") as cluster:
        yield {**found, "PostgreSQL": cluster.create_database("fuzz")}


def main() -> int:
    """One run on each database; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=5, help="at most so many of each route and phase")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    code = 0
    with tempfile.TemporaryDirectory(prefix="tidings-fuzz-") as name, databases(Path(name)) as found:
        for database, url in found.items():
            folder = Path(name) / database
            folder.mkdir()
            with engine(folder, url) as (address, logged):
                words = (
                    "--max-examples",
                    str(given.cases),
                    "--seed",
                    str(given.seed),
                    "--continue-on-failure",
                )
                done = fuzz(address, folder, fill(address), *words)
            wrong = troubles(logged)
            print(f"\n== {database}\n{done.stdout}", *wrong, sep="\n")
            code = code or done.returncode or bool(wrong)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
