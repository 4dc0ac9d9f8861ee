"""Strict E.164 phone numbers, and the user ids that WhatsApp gives to people without a visible number. Pure."""

from __future__ import annotations

import re

from ...model.errors import Invalid

_E164 = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_USER_ID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_WRITTEN = re.compile(r"[\s()./-]")


def is_e164(text: str) -> bool:
    """Whether it is a plus and 7 to 15 digits that do not begin with 0."""
    return _E164.fullmatch(text) is not None


def is_user_id(text: str) -> bool:
    """Whether it is a business-scoped user id of WhatsApp, such as US.13491208655302741918."""
    return _USER_ID.fullmatch(text) is not None


def check_e164(number: str) -> None:
    """Raise Invalid unless the recipient is an E.164 number."""
    if not is_e164(number):
        raise Invalid(f"{number[:40]!r} is not an E.164 phone number", remedy=_remedy(number), field="to")


def _remedy(number: str) -> str:
    bare = _WRITTEN.sub("", number)
    if is_e164(bare):
        return f"Write it without spaces and punctuation: {bare}"
    if bare.startswith("00") and is_e164(f"+{bare[2:]}"):
        return f"Write + instead of 00: +{bare[2:]}"
    return "Use a plus, the country code and the number, digits only, such as +15551234567"
