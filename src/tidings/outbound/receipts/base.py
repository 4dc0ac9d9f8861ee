"""Receipts: what a provider's call-back says, once it is verified. Words only; no I/O.

A call-back is known to be genuine by the provider's own signature, made over the raw bytes. None of the four
schemes signs the time of sending, and none needs to: the same receipt twice changes nothing, so an old
call-back that is played again changes nothing either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import orjson

from ...model.errors import Invalid
from ...model.task import Category
from ...model.time import SECOND

MAX_NAME_LENGTH = 256
_OLDEST = 1_000_000_000 * SECOND  # a time before 2001 is no time
_NAME = re.compile(rf"[!-~]{{1,{MAX_NAME_LENGTH}}}", re.ASCII)
_OWN_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


class ReceiptStatus(StrEnum):
    """What became of a message over there."""

    SENT = "sent"  # the provider has it: proof where that was in doubt, otherwise no news
    DELIVERED = "delivered"
    READ = "read"
    UNDELIVERED = "undelivered"


class Receipt(NamedTuple):
    """One fact. `message` is our own id, where the provider gives it back and it stands for the whole."""

    name: str  # what the provider calls the message
    what: ReceiptStatus
    at: int
    account: str  # whose message it is over there
    message: str | None = None
    reason: str | None = None
    category: Category | None = None


class Callback(NamedTuple):
    """A provider's request as it came."""

    target: str  # path and query, undecoded
    headers: Mapping[str, str]  # names in small letters
    body: bytes


class CallbackContent(NamedTuple):
    """What a call-back says: receipts, and whatever else it is about, for those who listen."""

    receipts: Sequence[Receipt] = ()
    heard: Mapping[str, Any] | None = None


class CallbackReader(Protocol):
    """One provider's call-backs for one account."""

    kind: str
    account: str

    def verify(self, call: Callback) -> None:
        """Raise BadSignature unless the provider sent exactly this."""

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """What it says; what is not understood is left out. Raises Invalid when it cannot be read at all."""

    def challenge(self, query: Mapping[str, str]) -> str:
        """The answer to the provider's question whether this address is ours; raises BadSignature."""

    def names(self, receipt: str) -> Sequence[str]:
        """What call-backs will call a message whose send was answered with this, part by part."""

    def trusts(self, other: CallbackReader) -> bool:
        """Whether whoever signs for this account also signs for that one."""


def parse_object(body: bytes) -> Mapping[str, Any]:
    """A body that must be a JSON object."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid("the call-back is not JSON", remedy="send it as the provider does") from error
    if not isinstance(found, dict):
        raise Invalid("the call-back is not a JSON object", remedy="send it as the provider does")
    return found


def json_objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else is there is left out."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def valid_name(value: object) -> str | None:
    """A name that can be kept and found again, or None."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def own_id(value: object) -> str | None:
    """Our own id, given back; None for a part of a message, which proves nothing about the whole."""
    return value if isinstance(value, str) and _OWN_ID.fullmatch(value) else None


def provider_time(micros: int | None, *, now: int) -> int:
    """When it happened by the provider's clock: never in the future, and now where it does not say."""
    return now if micros is None or micros < _OLDEST else min(micros, now)
