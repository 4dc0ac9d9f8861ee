"""Receipts, callbacks and the port of callback readers. No I/O.

A callback is authenticated by the provider's signature over the raw bytes. None of the four schemes signs a
timestamp; replayed callbacks are harmless because recording a receipt is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import orjson

from ...model.errors import Invalid
from ...model.outcome import Reject, Retry
from ...model.task import Category
from ...model.time import SECOND
from ...wire.webhook_signatures import BadSignature

MAX_NAME_LENGTH = 256
_OLDEST = 1_000_000_000 * SECOND  # times before 2001 are invalid
_NAME = re.compile(rf"[!-~]{{1,{MAX_NAME_LENGTH}}}", re.ASCII)
_OWN_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


class ReceiptStatus(StrEnum):
    """The delivery status that a provider reports."""

    SENT = "sent"  # accepted by the provider; settles an uncertain send
    DELIVERED = "delivered"
    READ = "read"
    UNDELIVERED = "undelivered"


class Receipt(NamedTuple):
    """One reported status. `message` is our own id, if the provider returns it for the whole message."""

    name: str  # the provider's message id
    what: ReceiptStatus
    at: int
    account: str  # the provider account
    message: str | None = None
    reason: str | None = None
    category: Category | None = None
    opted_out: bool = False  # the recipient wants no messages from us


class Callback(NamedTuple):
    """A provider's raw request."""

    target: str  # path and query, undecoded
    headers: Mapping[str, str]  # lowercase names
    body: bytes


class CallbackContent(NamedTuple):
    """The receipts of a callback, and the payload for listeners if it has more."""

    receipts: Sequence[Receipt] = ()
    heard: Mapping[str, Any] | None = None


class CallbackReader(Protocol):
    """Reads the callbacks of one provider account."""

    kind: str
    provider: str  # for error texts
    account: str

    def verify(self, call: Callback) -> None:
        """Raise BadSignature unless the provider signed this request."""

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """Parse the callback; unknown parts are ignored. Raises Invalid if it is unreadable."""

    def challenge(self, query: Mapping[str, str]) -> str:
        """Answer the provider's verification challenge; raises BadSignature."""
        raise BadSignature(f"{self.provider} has no verification challenge")

    def names(self, receipt: str) -> Sequence[str]:
        """The provider ids that callbacks will use for a message, one per part."""
        return receipt.split()

    def trusts(self, other: CallbackReader) -> bool:
        """Whether both accounts share a signing key."""
        return False


class CallbackListener(Protocol):
    """Receives verified callbacks that contain more than receipts, such as inbound messages.

    It runs before the provider is acknowledged: if it raises, the provider calls again, so the same payload
    may come twice.
    """

    async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
        """Handle a payload in the provider's format.

        `accounts` maps the provider's accounts that share the channel's signing key to their channels: one
        callback URL may serve several of them.
        """


def parse_object(body: bytes) -> Mapping[str, Any]:
    """Parse a JSON object; raises Invalid."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid("the callback is not JSON", remedy="send it as the provider does") from error
    if not isinstance(found, dict):
        raise Invalid("the callback is not a JSON object", remedy="send it as the provider does")
    return found


def json_objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list, without other values."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def valid_name(value: object) -> str | None:
    """The value if it is a valid provider id, else None."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def own_id(value: object) -> str | None:
    """Our own message id; None for the id of a part, which does not prove the whole was sent."""
    return value if isinstance(value, str) and _OWN_ID.fullmatch(value) else None


def reason_of(outcome: Retry | Reject) -> tuple[str, Category, bool]:
    """The reason and category of a failure that is reported later, and whether it is an opt-out."""
    return outcome.reason, outcome.category, isinstance(outcome, Reject) and outcome.opted_out


def provider_time(micros: int | None, *, now: int) -> int:
    """The provider's time, capped at now; now if it is missing or invalid."""
    return now if micros is None or micros < _OLDEST else min(micros, now)
