"""Drafts from flags and from lines of a file: the same names, read in the same way."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from ..model.errors import Invalid
from ..model.message import Draft
from ..model.time import micros
from ..outbound.times import parse_in, parse_when

TEXTS = ("channel", "to", "text", "subject", "at", "in", "order_key", "expires_at", "expires_in")
NUMBERS = ("priority", "max_tries")
FIELDS = (*TEXTS, *NUMBERS, "data")


def read_line(line: bytes, usual: Mapping[str, Any], *, now: int, zone: ZoneInfo) -> Draft:
    """One line of a file; what it does not say is taken from the flags."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"this is not JSON ({error})", remedy=_LINE) from None
    if not isinstance(fields, dict):
        raise Invalid("this is not a JSON object", remedy=_LINE)
    times = {"at", "in"} & fields.keys()
    rest = {name: value for name, value in usual.items() if not (times and name in ("at", "in"))}
    return read(rest | fields, now=now, zone=zone)


def read(fields: Mapping[str, Any], *, now: int, zone: ZoneInfo) -> Draft:
    """A draft, checked in shape; whether it can be sent is for the engine to say."""
    for name, value in fields.items():
        _check(name, value)
    for name in ("channel", "to"):
        if not fields.get(name):
            raise Invalid(f"there is no {name!r}", remedy=_MISSING[name], field=name)
    at = _moment(fields, now, zone)
    return Draft(
        channel=fields["channel"],
        to=fields["to"],
        text=fields.get("text") or "",
        subject=fields.get("subject"),
        data=fields.get("data"),
        at=at,
        priority=5 if fields.get("priority") is None else fields["priority"],
        order_key=fields.get("order_key"),
        expires_at=_expiry(fields, now if at is None else max(at, now), now, zone),
        max_tries=fields.get("max_tries"),
    )


_LINE = 'write one object a line: {"to": "ada", "text": "hello"}'
_MISSING = {"channel": "say which way out with --channel NAME", "to": "say who gets it with --to WHO"}


def _check(name: str, value: object) -> None:
    if name not in FIELDS:
        close = difflib.get_close_matches(name, FIELDS, 1)
        remedy = f"did you mean {close[0]!r}?" if close else f"known fields: {', '.join(FIELDS)}"
        raise Invalid(f"there is no field {name!r}", remedy=remedy, field=name)
    if value is None:
        return
    if name in TEXTS and not isinstance(value, str):
        raise Invalid(f"{name} is not a text", remedy=f'write "{name}": "..."', field=name)
    if name in NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
        raise Invalid(f"{name} is not a whole number", remedy=f'write "{name}": 5', field=name)
    if name == "data" and not isinstance(value, dict):
        raise Invalid("data is not a JSON object", remedy='write it as {"name": "value"}', field=name)


def _moment(fields: Mapping[str, Any], now: int, zone: ZoneInfo) -> int | None:
    at, length = fields.get("at"), fields.get("in")
    if at is not None and length is not None:
        raise Invalid("both 'at' and 'in' are given", remedy="give one of them", field="at")
    if at is not None:
        return parse_when(at, now=now, zone=zone)
    return None if length is None else now + micros(parse_in(length))


def _expiry(fields: Mapping[str, Any], due: int, now: int, zone: ZoneInfo) -> int | None:
    at, length = fields.get("expires_at"), fields.get("expires_in")
    if at is not None and length is not None:
        raise Invalid(
            "both 'expires_at' and 'expires_in' are given", remedy="give one of them", field="expires_at"
        )
    if at is not None:
        return parse_when(at, now=now, zone=zone, field="expires_at")
    return None if length is None else due + micros(parse_in(length, field="expires_in"))
