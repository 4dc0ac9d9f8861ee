"""The named imports of the settings file: where the rows are, how to read them, what to write back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from ...inputs.plugins import hint
from ...inputs.timezones import parse_timezone
from ...model.errors import Invalid, Misconfigured

WRITTEN_FIELDS = ("status", "sent_at", "error")
ROW_STATES = ("imported", "sent", "failed", "unknown", "cancelled", "expired")
"""The states of a row for a write-back; `imported` until its message is final."""


@dataclass(frozen=True, slots=True)
class TableImportRequest:
    """What to import, and how to read it."""

    map: Sequence[str]
    where: str | None = None
    key: str | None = None  # the unique column; None: the primary key
    channel: str | None = None  # if the map has none
    time: str = "auto"
    timezone: ZoneInfo | None = None
    overdue: bool = False  # also import rows that are overdue by more than the grace
    source: str | None = None  # the name that identifies imported rows; None: the table's location
    status: str | None = None  # the column with the status that undo restores
    is_written_back: bool = False


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """One named import."""

    url: str = field(repr=False)
    table: str | None
    request: TableImportRequest
    write_back: Mapping[str, str] = field(default_factory=dict)  # by written field: a column
    words: Mapping[str, str] = field(default_factory=dict)  # by state: the old system's word

    def describe(self) -> Mapping[str, Any]:
        """The settings as plain values, with the URL unmasked."""
        shown = {"url": self.url, "table": self.table, "map": list(self.request.map), "write_back": self.write_back}
        return {name: value for name, value in shown.items() if value}


_TEXTS = ("url", "table", "where", "key", "channel", "time", "timezone")
_OPTIONS = (*_TEXTS, "map", "overdue", "write_back", "words")


def read_import(name: str, options: Mapping[str, Any]) -> ImportSettings:
    """Parse the table [imports.NAME]; raises Misconfigured."""
    place = f"imports.{name}"
    _known(options, _OPTIONS, place)
    for option in _TEXTS:
        if option in options and not (isinstance(options[option], str) and options[option]):
            raise Misconfigured(f"{place}.{option} is not a text", remedy="Write it in quotes", field=place)
    if "url" not in options or not isinstance(options.get("map"), dict):
        example = 'url = "env:OLD_DATABASE" and map = { to = "phone", text = "body", at = "due" }'
        raise Misconfigured(f"{place} needs url and map", remedy=f"Write {example}", field=place)
    write_back, words = options.get("write_back", {}), options.get("words", {})
    for option, given, known in (("write_back", write_back, WRITTEN_FIELDS), ("words", words, ROW_STATES)):
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise Misconfigured(f"{place}.{option} is not a table of texts", remedy="See the reference", field=place)
        _known(given, known, f"{place}.{option}")
    try:
        timezone = parse_timezone(options["timezone"]) if "timezone" in options else None
    except Invalid as error:
        raise Misconfigured(f"{place}: {error.problem}", remedy=error.remedy or "", field=place) from None
    request = TableImportRequest(
        [f"{field}={column}" for field, column in options["map"].items()],
        options.get("where"),
        options.get("key"),
        options.get("channel"),
        options.get("time", "auto"),
        timezone,
        overdue=options.get("overdue") is True,
        source=name,
        status=write_back.get("status"),
        is_written_back=bool(write_back),
    )
    return ImportSettings(options["url"], options.get("table"), request, write_back, words)


def _known(given: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise Misconfigured(f"unknown setting '{place}.{unknown[0]}'", remedy=hint(unknown[0], known), field=place)
