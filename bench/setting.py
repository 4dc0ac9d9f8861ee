"""Where and how measurements run: the server, the scratch folder, the sizes, and what was measured so far."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .calls import call
from .contest import Measurement, Series, contest
from .servers import Server, old_snapshot


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each measurement does."""

    drain: int = 100_000
    procrastinate: int = 5_000
    lag: int = 500
    lag_over: float = 20
    burst: int = 2_000
    future: int = 5_000_000
    parked: int = 100_000
    memory: int = 1_000_000
    webhook: int = 20_000
    rabbit: int = 20_000


FULL = Sizes()
QUICK = Sizes(
    drain=10_000,
    procrastinate=500,
    lag=100,
    lag_over=4,
    future=100_000,
    parked=10_000,
    memory=50_000,
    webhook=2_000,
    rabbit=2_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Hands out measurements, each on a fresh database, and keeps every series."""

    server: Server
    scratch: Path
    sizes: Sizes = FULL
    rounds: int = 5
    patience: float = 0
    peer_python: str = sys.executable
    series: dict[str, Series] = field(default_factory=dict)

    def contest(self, title: str, contestants: Mapping[str, Measurement], *, once: bool = False) -> dict[str, Series]:
        """Measure in interleaved rounds (or once), and keep what came out."""
        print(f"{title}:", file=sys.stderr, flush=True)
        done = contest(contestants, 1 if once else self.rounds, self.patience)
        self.series.update({f"{title}: {name}": series for name, series in done.items()})
        return done

    def on_postgres(self, module: str, function: str, *, snapshot: bool = False, **arguments: Any) -> Measurement:
        """A measurement on a fresh PostgreSQL database, if asked beside a connection with an old snapshot."""

        def measure() -> dict[str, Any]:
            with self.server.database() as dsn:
                if not snapshot:
                    return call(module, function, dsn=dsn, **arguments)
                with old_snapshot(dsn):
                    return call(module, function, dsn=dsn, **arguments)

        return measure

    def on_sqlite(self, module: str, function: str, **arguments: Any) -> Measurement:
        """A measurement on a fresh SQLite file."""

        def measure() -> dict[str, Any]:
            with self._file() as path:
                return call(module, function, path=path, **arguments)

        return measure

    def on_both(self, function: str, *, timeout: float = 900, **arguments: Any) -> dict[str, Measurement]:
        """One of ours on each store, told apart by the URL."""

        def postgres() -> dict[str, Any]:
            with self.server.database() as dsn:
                return call("bench.ours", function, timeout=timeout, url=dsn, **arguments)

        def sqlite() -> dict[str, Any]:
            with self._file() as path:
                return call("bench.ours", function, timeout=timeout, url=f"sqlite:///{path}", **arguments)

        return {"PostgreSQL": postgres, "SQLite": sqlite}

    def urls(self) -> dict[str, Callable[..., Measurement]]:
        """For each store what makes a measurement of a function that takes a URL."""

        def postgres(module: str, function: str, **arguments: Any) -> Measurement:
            def measure() -> dict[str, Any]:
                with self.server.database() as dsn:
                    return call(module, function, url=dsn, **arguments)

            return measure

        def sqlite(module: str, function: str, **arguments: Any) -> Measurement:
            def measure() -> dict[str, Any]:
                with self._file() as path:
                    return call(module, function, url=f"sqlite:///{path}", **arguments)

            return measure

        return {"PostgreSQL": postgres, "SQLite": sqlite}

    @contextmanager
    def _file(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            yield Path(folder) / "bench.db"
