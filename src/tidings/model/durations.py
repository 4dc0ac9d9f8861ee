"""Durations as people write and read them: "30s" in a setting, "1 h 30 min" in the dashboard.

Only units of fixed length: months and years are rejected. A day is 24 hours.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta

UNITS = "ms, s, m, h, d, w"

_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*,?(?:\s*and\b)?")
_ISO = re.compile(r"p(?:([0-9]+)d)?(?:t(?=[0-9])(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+(?:\.[0-9]+)?)s)?)?")


def parse(raw: str | float) -> timedelta:
    """Parse a duration such as "250ms", "30s", "5 min", "1h30m", "7d", "PT10M", or a number of seconds."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError(f"{raw!r} is not a duration such as 30s, 5m or 12h")
    text = str(raw).strip().lower()
    seconds = _plain(text)
    if seconds is None:
        seconds = _iso(text) if text.startswith("p") else _worded(text)
    if seconds is None:
        raise ValueError(f"{_short(raw)!r} is not a duration such as 30s, 5m or 12h (units: {UNITS})")
    if seconds < 0:
        raise ValueError(f"{_short(raw)!r} is negative")
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise ValueError(f"{_short(raw)!r} is too long") from None


def humanize(length: timedelta) -> str:
    """Format a duration in its two largest units: "250 ms", "1.5 s", "5 min", "1 h 30 min", "2 d"."""
    if length < timedelta(0):
        return f"-{humanize(-length)}"
    seconds = length.total_seconds()
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms" if seconds >= 0.0005 else "0 s"
    if seconds < 9.95:
        return f"{round(seconds, 1):g} s"
    rest, counts = round(seconds), []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        counts.append((count, unit))
    first = next(place for place, (count, _) in enumerate(counts) if count)
    return " ".join(f"{count} {unit}" for count, unit in counts[first : first + 2] if count)


def _plain(text: str) -> float | None:
    """Return a number without unit; infinity and not-a-number are rejected."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _iso(text: str) -> float | None:
    """ISO 8601 with fixed units only: P1D, PT1H30M, PT0.5S."""
    found = _ISO.fullmatch(text)
    if not found or not any(found.groups()):
        return None
    sizes = (86_400, 3600, 60, 1)
    return sum(float(count) * size for count, size in zip(found.groups(), sizes, strict=True) if count)


def _worded(text: str) -> float | None:
    """Numbers with units, largest first, each unit once: "1h30m", "1 hour and 30 minutes"."""
    total, place, last = 0.0, 0, math.inf
    while place < len(text):
        found = _PART.match(text, place)
        size = _SECONDS.get(found[2]) if found else None
        if found is None or size is None or size >= last:
            return None
        total, place, last = total + float(found[1]) * size, found.end(), size
    return total if last is not math.inf and not text.endswith((",", "and")) else None


def _short(raw: object) -> str:
    text = str(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."
