"""Format dates and numbers in the recipient's language and time zone.

An unlisted language gets neutral formats: 2027-01-15 and 1234.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import NamedTuple

from .variables import read_date


class LanguageFormat(NamedTuple):
    """Date and number formats of a language."""

    months: tuple[str, ...]
    days: tuple[str, ...]  # Monday first
    day: str
    full: str
    thousands: str
    point: str


def language_format(code: str | None) -> LanguageFormat | None:
    """The formats of a language code (`pt-BR` is `pt`); None if it is not listed."""
    return LANGUAGES.get((code or "en").replace("_", "-").partition("-")[0].lower())


def format_date(text: str, form: str, code: str | None, timezone: tzinfo) -> str:
    """A date in words; `full` adds the weekday, `short` is ISO 8601."""
    found = read_date(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a date or a time with offset")
    day = found.astimezone(timezone).date() if isinstance(found, datetime) else found
    rules = language_format(code)
    if rules is None or form == "short":
        return day.isoformat()
    if form not in ("day", "full"):
        raise ValueError(f"unknown date format {form[:40]!r}: use day, full or short")
    words = {"month": rules.months[day.month - 1], "weekday": rules.days[day.weekday()]}
    return (rules.day if form == "day" else rules.full).format(day=day.day, year=day.year, **words)


def format_time(text: str, timezone: tzinfo) -> str:
    """The time of day in the recipient's time zone."""
    found = read_date(text)
    if not isinstance(found, datetime):
        raise ValueError(f"{text[:40]!r} is not a time with offset")
    return found.astimezone(timezone).strftime("%H:%M")


def format_number(value: int | float, digits: int | None, code: str | None) -> str:
    """A number with the separators of the language and, if given, a fixed number of decimals."""
    rules = language_format(code)
    written = f"{value:,}" if digits is None else f"{value:,.{digits}f}"
    if rules is None:
        return written.replace(",", "")
    return written.translate({ord(","): rules.thousands, ord("."): rules.point})


def _language(months: str, days: str, day: str, full: str, thousands: str, point: str) -> LanguageFormat:
    return LanguageFormat(tuple(months.split()), tuple(days.split()), day, full, thousands, point)


LANGUAGES: Mapping[str, LanguageFormat] = {
    "en": _language(
        "January February March April May June July August September October November December",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "{day} {month} {year}", "{weekday}, {day} {month} {year}", ",", ".",
    ),
    "de": _language(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        "{day}. {month} {year}", "{weekday}, {day}. {month} {year}", ".", ",",
    ),
    "es": _language(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "lunes martes miércoles jueves viernes sábado domingo",
        "{day} de {month} de {year}", "{weekday}, {day} de {month} de {year}", ".", ",",
    ),
    "fr": _language(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "{day} {month} {year}", "{weekday} {day} {month} {year}", "\u202f", ",",
    ),
    "it": _language(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "{day} {month} {year}", "{weekday} {day} {month} {year}", ".", ",",
    ),
    "nl": _language(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        "{day} {month} {year}", "{weekday} {day} {month} {year}", ".", ",",
    ),
    "pt": _language(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
        "{day} de {month} de {year}", "{weekday}, {day} de {month} de {year}", ".", ",",
    ),
}  # fmt: skip
