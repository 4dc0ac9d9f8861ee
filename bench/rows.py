"""Rows of the result: a figure, what it is compared with, and whether its bar holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .contest import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. The bar is on the ratio where there is a reference, else on the figure."""

    key: str
    what: str
    unit: str = "/s"
    measured: float | None = None
    reference: float | None = None
    reference_is: str = ""
    at_least: float | None = None
    at_most: float | None = None
    foreign_cpu: float | None = None
    samples: Sequence[float] = field(default_factory=tuple)
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        """The figure by its reference."""
        if self.measured is None or not self.reference:
            return None
        return self.measured / self.reference

    @property
    def holds(self) -> bool | None:
        """Whether the bar is kept; None where there is no bar or not everything was measured."""
        value = self.ratio if self.reference_is else self.measured
        if value is None or self.problem:
            return None
        if self.at_least is not None:
            return value >= self.at_least
        return value <= self.at_most if self.at_most is not None else None

    @property
    def has_bar(self) -> bool:
        """Whether this row must hold, or is there to be read only."""
        return self.at_least is not None or self.at_most is not None

    def as_json(self) -> dict[str, Any]:
        """All of it, with what follows from it."""
        ratio = None if self.ratio is None else round(self.ratio, 3)
        return asdict(self) | {"samples": list(self.samples), "ratio": ratio, "holds": self.holds}


HEAD = ("what", "bar", "measured", "against", "ratio", "holds", "others' CPU")


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    problems = dict.fromkeys(row.problem for row in rows if row.problem)  # each once, in order
    return "\n".join([aligned([HEAD, *map(_cells, rows)]), *(f"not measured: {why}" for why in problems)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns under a ruled head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in ruled)


def summary(series: Mapping[str, Series]) -> str:
    """Every contestant's rate, with the range of its runs."""
    lines: list[Sequence[str]] = [("contestant", "median", "least", "most", "runs", "others' CPU")]
    for name, one in series.items():
        rates = one.values() if one.answers and "per_s" in one.answers[0] else []
        if rates:
            figures = [_figure(value, "/s") for value in (one.median(), min(rates), max(rates))]
            lines.append((name, *figures, str(len(rates)), f"{one.foreign_cpu:.0%}"))
    return aligned(lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        _bar(row),
        _figure(row.measured, row.unit),
        f"{_figure(row.reference, row.unit)} {row.reference_is}" if row.reference else "",
        f"{row.ratio:.2f}" if row.ratio is not None else "",
        {True: "yes", False: "NO", None: "?" if row.has_bar else ""}[row.holds],
        f"{row.foreign_cpu:.0%}" if row.foreign_cpu is not None else "",
    )


def _bar(row: Row) -> str:
    sign, limit = ("≥", row.at_least) if row.at_least is not None else ("≤", row.at_most)
    if limit is None:
        return ""
    return f"{sign} {limit:g} × {row.reference_is}" if row.reference_is else f"{sign} {_figure(limit, row.unit)}"


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return number + unit if unit.startswith("/") else f"{number} {unit}"
