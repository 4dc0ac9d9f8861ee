"""The command line: measure, print the table, write the results, and end with one JSON line.

Progress goes to standard error. The exit code is 0 when every bar asked for holds, 1 when one does not or
could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from . import rows
from .calls import MeasurementFailed, call
from .measures import MEASURES
from .servers import SETTINGS, postgres
from .setting import FULL, QUICK, Setting

RESULTS = Path(__file__).parent / "results" / "latest.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    options = _options(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped with us
    began = datetime.now(UTC)
    measured: list[rows.Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.scratch) as folder, postgres() as server:
        setting = Setting(
            server=server,
            scratch=Path(folder),
            sizes=QUICK if options.quick else FULL,
            rounds=options.runs or (1 if options.quick else 5),
            patience=options.patience,
            peer_python=options.peer_python,
        )
        machine = _machine(setting)
        for name in options.only:
            measured += MEASURES[name](setting)
    result = {
        "at": began.isoformat(timespec="seconds"),
        "quick": options.quick,
        "rounds": setting.rounds,
        "machine": machine,
        "rows": [row.as_json() for row in measured],
        "all_hold": all(row.holds for row in measured if row.has_bar),
    }
    runs = {name: series.as_json() for name, series in setting.series.items()}
    print(rows.table(measured), rows.summary(setting.series), sep="\n\n", end="\n\n")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result | {"runs": runs}, indent=1) + "\n")
    print(json.dumps(result))
    return 0 if result["all_hold"] else 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=_words, default=list(MEASURES), help=f"of {','.join(MEASURES)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, one run: a smoke test")
    parser.add_argument("--runs", type=int, help="interleaved rounds (default 5)")
    parser.add_argument(
        "--patience",
        type=float,
        default=15,
        help="most seconds to wait for a quiet machine before a run; 0: take it as it is",
    )
    parser.add_argument("--scratch", help="folder for SQLite files; on a real disk (default: the system's)")
    parser.add_argument(
        "--peer-python",
        default=os.environ.get("BENCH_PEER_PYTHON", sys.executable),
        help="interpreter that has the peers installed (default: this one)",
    )
    return parser.parse_args(argv)


def _words(text: str) -> list[str]:
    words = text.split(",")
    unknown = set(words) - set(MEASURES)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; use {', '.join(MEASURES)}")
    return words


def _machine(setting: Setting) -> dict[str, Any]:
    """What a reader needs to know to compare."""
    try:
        disk = call("bench.limits", "disk", folder=setting.scratch)["fdatasync_ms"]
    except MeasurementFailed as problem:
        disk = str(problem)
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "fdatasync_ms": disk,
        "postgres": {"version": setting.server.version(), **SETTINGS},
        "versions": {name: metadata.version(name) for name in ("apsw", "asyncpg", "uvloop")},
    }


if __name__ == "__main__":
    sys.exit(main())
