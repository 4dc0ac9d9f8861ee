"""`python -m tests.simulation`: many worlds, or one with its trace. The last line is one JSON object."""

from __future__ import annotations

import argparse
import json
import sys
import time

from .many import Sum, run, verdict
from .world import simulate


def main() -> int:
    """Give 1 when something is wrong, or when the run has met too little to prove anything."""
    ask = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    ask.add_argument("--seed", type=int, help="this world only")
    ask.add_argument("--trace", action="store_true", help="with everything that happens in it")
    ask.add_argument("--seeds", type=int, default=200, help="how many worlds (200)")
    ask.add_argument("--first", type=int, default=0, help="the first of them (0)")
    ask.add_argument("--minutes", type=float, help="stop after so long")
    ask.add_argument("--hours", type=float, default=0, help="with --seed: a long world, of so many hours")
    given = ask.parse_args()
    if given.seed is not None:
        return _one(given.seed, given.hours, trace=given.trace)
    until = float("inf") if given.minutes is None else time.monotonic() + 60 * given.minutes
    seeds = range(given.first, given.first + given.seeds)
    total = run(seeds, until=until, told=lambda report: print(verdict(report), flush=True))
    missing = total.missing if total.worlds >= 200 else []
    for name in missing:
        print(f"never happened: {name}")
    print(json.dumps(_told(total, missing)))
    return 1 if total.guilty or missing else 0


def _one(seed: int, hours: float, *, trace: bool) -> int:
    began = time.monotonic()
    report = simulate(seed, hours=hours)
    if trace:
        print("\n".join(report.trace))
    if report.violations:
        print(verdict(report), file=sys.stderr)
    took = round(time.monotonic() - began, 2)
    print(json.dumps({
        "seed": seed, "ok": not report.violations, "violations": report.violations, "trace": report.digest,
        "virtual_seconds": round(report.seconds), "seconds": took, **report.counts,
    }))  # fmt: skip
    return 1 if report.violations else 0


def _told(total: Sum, missing: list[str]) -> dict[str, object]:
    return {
        "ok": not total.guilty and not missing,
        "worlds": total.worlds,
        "virtual_hours": round(total.seconds / 3600, 2),
        "seconds": round(total.took, 1),
        "guilty": [report.seed for report in total.guilty],
        "never_happened": missing,
        **total.counts,
        "met": dict(sorted(total.met.items())),
    }


if __name__ == "__main__":
    raise SystemExit(main())
