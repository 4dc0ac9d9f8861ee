"""The settings table [inbound.calendar]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ...model import durations
from ...model.errors import Misconfigured
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, check_url
from ..option_parsers import duration, flag, names, one_of, parse_table, text

TABLE = "inbound.calendar"
KINDS = ("builtin", "http")
SQUADS = ("34", "35", "42", "43", "54")
GRIDS = {"builtin": 30, "http": 60}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class CalendarSettings:
    """The calendar and its squads."""

    kind: str = "builtin"
    name: str = "shifts"
    squads: tuple[str, ...] = SQUADS
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    grid: int = 30
    deadline: timedelta = timedelta(seconds=10)
    allow_private: bool = False
    allow_http: bool = False
    feed_token: str | None = field(default=None, repr=False)

    @property
    def rules(self) -> SsrfRules:
        return SsrfRules(self.allow_private, self.allow_http)

    def describe(self) -> Mapping[str, Any]:
        """Return all options as plain values with secrets masked."""
        shown: dict[str, Any] = {name: getattr(self, name) for name in READERS}
        shown |= {"squads": list(self.squads), "deadline": durations.humanize(self.deadline)}
        for name in ("token", "feed_token"):
            shown[name] = getattr(shown[name], "shown", "***") if shown[name] else None
        return {name: value for name, value in shown.items() if value is not None}


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("must have letters, digits, - and _, at most 63 characters")
    return value


def _feed_token(value: object) -> str:
    if not isinstance(value, str) or len(value) < 16:
        raise ValueError("must have at least 16 characters; make one with: openssl rand -hex 32")
    return value


def _grid(value: object) -> int:
    if str(value) not in ("30", "60"):
        raise ValueError("must be 30 or 60 minutes")
    return int(str(value))


READERS: Mapping[str, Callable[[Any], object]] = {
    "kind": one_of(KINDS),
    "name": _name,
    "squads": names(40, least=1),
    "url": text,
    "token": text,
    "grid": _grid,
    "deadline": duration,
    "allow_private": flag,
    "allow_http": flag,
    "feed_token": _feed_token,
}


def read(options: object) -> CalendarSettings:
    """Parse the table; raises Misconfigured with the option and its remedy."""
    given = parse_table(TABLE, options, READERS)
    given.setdefault("grid", GRIDS[given.get("kind", "builtin")])
    settings = CalendarSettings(**given)
    _validate(settings)
    return settings


def _validate(settings: CalendarSettings) -> None:
    """Check options that depend on each other."""
    if settings.kind == "builtin":
        strange = [name for name in ("url", "token") if getattr(settings, name) is not None]
        if strange:
            raise _wrong(strange[0], "not used by the built-in calendar", 'Remove it, or set kind = "http"')
        return
    if settings.url is None:
        raise _wrong("url", "missing", "Add the URL of the calendar's command API")
    try:
        check_url(settings.url, settings.rules)
    except ForbiddenUrl as error:
        remedy = "Use a public https URL, or set allow_private and allow_http for your own network"
        raise _wrong("url", f"not allowed: {error}", remedy) from None
    if "?" in settings.url or "#" in settings.url:
        raise _wrong("url", "has a query or fragment", "Remove it; the commands are added as a query")


def _wrong(option: str, problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(f"{TABLE}.{option}: {problem}", remedy=remedy, field=f"{TABLE}.{option}")
