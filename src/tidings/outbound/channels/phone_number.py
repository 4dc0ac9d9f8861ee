"""Phone numbers in the one form that every provider takes: E.164. Pure and strict; nothing is guessed."""

from __future__ import annotations

import re

from ...model.errors import Invalid

_E164 = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_WRITTEN = re.compile(r"[\s()./-]")


def is_e164(text: str) -> bool:
    """A plus, a country code that does not begin with 0, and 7 to 15 digits in all."""
    return _E164.fullmatch(text) is not None


def check_e164(number: str) -> None:
    """Refuse a recipient that is no number of that form; the remedy shows how to write it."""
    if not is_e164(number):
        raise Invalid(f"{number[:40]!r} is no phone number in E.164 form", remedy=_remedy(number), field="to")


def _remedy(number: str) -> str:
    bare = _WRITTEN.sub("", number)
    if is_e164(bare):
        return f"Write it without spaces and signs: {bare}"
    if bare.startswith("00") and is_e164(f"+{bare[2:]}"):
        return f"Write + instead of 00: +{bare[2:]}"
    return "Use a plus, the country code and the number, digits only, such as +15551234567"
