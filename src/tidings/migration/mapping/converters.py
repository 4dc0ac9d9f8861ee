"""Converts values to field types: each type has one canonical form, or an error says why not. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from ...inputs.timezones import resolve_wall_time
from ...model.time import moment
from .content_hash import canonical_json, plain_json
from .rules import FieldKind, FieldRule

EPOCHS = {"epoch": 1, "epoch_ms": 1000}  # formats that count from 1970
LONGEST_URL = 2048

_LARGEST = 1 << 63
_LONGEST_WHOLE = 10**100  # as a text; ids of other systems may exceed 64 bits

_YES, _NO = frozenset({"true", "yes", "y", "1"}), frozenset({"false", "no", "n", "0"})
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}@((?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_](?:[\w-]{0,61}[^\W_]))")
_PHONE_MARKS = re.compile(r"\(0\)|[\s().\-/\u00a0\u2010-\u2013]")
_PHONE = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
_CONTROL = re.compile(r"[\x00\ud800-\udfff]")


_EMPTIED = (str, list, tuple, dict)  # types that can be present but empty
_ANY_NUMBER = FieldRule("number", FieldKind.NUMBER)


class ConversionError(Exception):
    """The value cannot be converted; the message continues after 'it'."""


def is_missing(value: Any) -> bool:
    """Return whether the source has no value here."""
    return value is None or (not value and isinstance(value, _EMPTIED))


def convert(value: Any, rule: FieldRule) -> Any:
    """Return the value in the canonical form of its type; a list if the rule says many."""
    if not rule.many:
        if isinstance(value, list | tuple) and rule.kind is not FieldKind.JSON:
            raise ConversionError("is a list: select one element ([0]), or set many = true")
        return _CONVERTERS[rule.kind](value, rule)
    entries = value if isinstance(value, list | tuple) else [value]
    return [_CONVERTERS[rule.kind](entry, rule) for entry in entries if not is_missing(entry)]


def as_text(value: Any) -> str:
    """Return a plain value as a text; raises ConversionError for objects and bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < _LONGEST_WHOLE:
        return str(value)
    if isinstance(value, int | float | Decimal):
        return canonical_json(_number(value, _ANY_NUMBER))
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    names: Mapping[type, str] = {dict: "an object", list: "a list", bytes: "bytes"}
    kind = names.get(type(value), type(value).__name__)
    raise ConversionError(f"is {kind}, not a text")


def _text(value: Any, rule: FieldRule) -> str:
    text = as_text(value)
    if len(text) > rule.max_length:
        raise ConversionError(f"has {len(text):,} characters, the limit is {rule.max_length:,} (max_length)")
    if not (text.isascii() and "\0" not in text) and (found := _CONTROL.search(text)):
        what = "a null byte" if found[0] == "\0" else "a lone surrogate"
        raise ConversionError(f"has {what} at position {found.start()}")
    return text


def _word(value: Any, rule: FieldRule) -> str:
    """A text with surrounding whitespace removed."""
    return _text(value, rule).strip()


def _number(value: Any, rule: FieldRule) -> int | float:
    if isinstance(value, bool):
        raise ConversionError("is true or false, not a number")
    if isinstance(value, int):
        if not -_LARGEST <= value < _LARGEST:
            raise ConversionError('is over 64 bits: use type = "text"')
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConversionError("is not a finite number")
        return value
    text = str(value) if isinstance(value, Decimal) else _word(value, rule)
    if not _NUMBER.fullmatch(text):
        raise ConversionError("is not a number such as 1234.5 (no thousands separators, a decimal point)")
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise ConversionError("is not a number") from None
    if exact == exact.to_integral_value() and abs(exact) < _LARGEST:
        return int(exact)
    near = float(exact)
    if not math.isfinite(near) or Decimal(repr(near)) != exact:
        raise ConversionError('has more digits than a number can hold: use type = "text"')
    return near


def _boolean(value: Any, rule: FieldRule) -> bool:
    if isinstance(value, bool):
        return value
    word = _word(value, rule).lower()
    if word not in _YES | _NO:
        raise ConversionError("is neither true nor false: use `values`")
    return word in _YES


def _date(value: Any, rule: FieldRule) -> str:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and not rule.format and re.fullmatch(r"\s*\d{4}-\d\d-\d\d\s*", value):
        return _parsed(value.strip(), None).date().isoformat()
    there = _datetime(value, rule)
    if rule.format and rule.format not in EPOCHS and not _has_clock(rule.format):
        return there.date().isoformat()
    if there.tzinfo is not None and rule.timezone is not None:
        try:
            return there.astimezone(rule.timezone).date().isoformat()
        except (OverflowError, ValueError):
            raise ConversionError("is not between the years 1 and 9999") from None
    if rule.timezone is None and there.time() != there.min.time():
        raise ConversionError('has a time of day: use type = "time", or set timezone to determine its day')
    return there.date().isoformat()


def _has_clock(form: str) -> bool:
    return bool(re.search(r"%[HIMScXsT]", form))


def _time(value: Any, rule: FieldRule) -> str:
    there = _datetime(value, rule)
    try:
        if there.tzinfo is None:
            if rule.timezone is None:
                raise ConversionError("has no time zone: set timezone, such as Europe/Berlin")
            there = moment(resolve_wall_time(there, rule.timezone).at)
        return there.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError):
        raise ConversionError("is not between the years 1 and 9999") from None


def _datetime(value: Any, rule: FieldRule) -> datetime:
    if isinstance(value, datetime):
        return value
    if rule.format in EPOCHS:
        seconds = Decimal(str(_number(value, rule))) / EPOCHS[rule.format]
        if not -62_135_596_800 <= seconds < 253_402_300_800:
            raise ConversionError("is not between the years 1 and 9999")
        return moment(int(seconds * 1_000_000))
    if not isinstance(value, str):
        raise ConversionError('is not a text with a time: for a number set format = "epoch" or "epoch_ms"')
    return _parsed(_word(value, rule), rule.format)


def _parsed(text: str, form: str | None) -> datetime:
    try:
        if form is not None:
            return datetime.strptime(text, form)  # noqa: DTZ007  (its zone is looked at by the caller)
        if not re.match(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError("not ISO 8601")
        return datetime.fromisoformat(text)
    except ValueError:
        wanted = f"in the form {form}" if form else "ISO 8601, such as 2026-11-16T09:00:00+01:00"
        raise ConversionError(f"is not a time {wanted}: set format if it differs") from None


def _email(value: Any, rule: FieldRule) -> str:
    text = _word(value, rule)
    found = _EMAIL.fullmatch(text)
    if not found or ".." in text or len(text) > 254 or text[0] == "." or ".@" in text:
        raise ConversionError("is not an email address")
    return text[: found.start(1)] + found[1].lower()


def _phone(value: Any, rule: FieldRule) -> str:
    text = _PHONE_MARKS.sub("", _word(value, rule))
    if text.startswith("00"):
        text = f"+{text[2:]}"
    if not _PHONE.fullmatch(text):
        raise ConversionError("is not a phone number with country code, such as +15551234567 (E.164)")
    return text


def _url(value: Any, rule: FieldRule) -> str:
    text = _word(value, rule)
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or len(text) > LONGEST_URL or not text.isprintable() or " " in text:
        raise ConversionError("is not a URL that begins with https:// or http://")
    return text


def _select(value: Any, rule: FieldRule) -> str:
    text = _word(value, rule)
    if rule.options and text not in rule.options:
        raise ConversionError(f"is none of the options: {', '.join(rule.options)[:200]}")
    return text


def _reference(value: Any, rule: FieldRule) -> str:
    if isinstance(value, bool | float):
        raise ConversionError("is not the id of a record")
    return _word(value, rule)


def _json(value: Any, rule: FieldRule) -> Any:
    try:
        text, made = canonical_json(value), plain_json(value)
    except (ValueError, RecursionError) as error:
        raise ConversionError(str(error) or "is nested too deeply") from None
    if len(text) > rule.max_length:
        raise ConversionError(f"has {len(text):,} characters, the limit is {rule.max_length:,} (max_length)")
    if any(_CONTROL.search(one) for one in _texts(value)):
        raise ConversionError("has a null byte or a lone surrogate")
    return made


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        yield from (text for entry in value.values() for text in _texts(entry))
    elif isinstance(value, list | tuple):
        yield from (text for entry in value for text in _texts(entry))


_CONVERTERS: Mapping[FieldKind, Callable[[Any, FieldRule], Any]] = {
    FieldKind.TEXT: _text,
    FieldKind.NUMBER: _number,
    FieldKind.BOOLEAN: _boolean,
    FieldKind.DATE: _date,
    FieldKind.TIME: _time,
    FieldKind.EMAIL: _email,
    FieldKind.PHONE: _phone,
    FieldKind.URL: _url,
    FieldKind.SELECT: _select,
    FieldKind.REFERENCE: _reference,
    FieldKind.JSON: _json,
}
