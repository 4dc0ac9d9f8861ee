"""WAHA webhooks: HMAC of the raw body in a header. Acks are receipts; other events go to the listener.

WAHA wraps a message id in its direction and chat, which may vary; only the id in the middle is stable and
used here.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...model.task import Category
from ...wire.webhook_signatures import BadSignature
from ..channels.whatsapp_servers.base import SessionServer, WhatsappSessionSettings
from .base import (
    Callback,
    CallbackContent,
    CallbackReader,
    Receipt,
    ReceiptStatus,
    parse_object,
    provider_time,
    valid_name,
)

HEADER, ALGORITHM = "x-webhook-hmac", "x-webhook-hmac-algorithm"
ACKS: Mapping[int, ReceiptStatus] = {
    -1: ReceiptStatus.UNDELIVERED,
    1: ReceiptStatus.SENT,
    2: ReceiptStatus.DELIVERED,
    3: ReceiptStatus.READ,
    4: ReceiptStatus.READ,
}
_ACK_EVENTS = ("message.ack", "message.ack.group")
_WRAPPED = re.compile(r"(?:true|false)_[^_]+_([^_]+)(?:_.+)?", re.ASCII)


class WahaCallbackReader(CallbackReader):
    """Reads the webhooks of one session."""

    kind, provider = "whatsapp_session", "WAHA"

    def __init__(self, session: str, key: str) -> None:
        self.account = session
        self._key = key.encode()

    def verify(self, call: Callback) -> None:
        """Check the hexadecimal HMAC-SHA512 of the raw body."""
        expected = hmac.digest(self._key, call.body, "sha512").hex()
        fits = hmac.compare_digest(call.headers.get(HEADER, "").lower().encode(), expected.encode())
        if not fits or call.headers.get(ALGORITHM, "sha512").lower() != "sha512":
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        body = parse_object(call.body)
        if body.get("event") not in _ACK_EVENTS:
            return CallbackContent(heard=body)
        receipt = _receipt(body, now)
        return CallbackContent([] if receipt is None else [receipt])

    def names(self, receipt: str) -> Sequence[str]:
        """The bare message id."""
        return (bare(receipt),)

    def trusts(self, other: CallbackReader) -> bool:
        """Whether both sessions share a server's key."""
        return isinstance(other, WahaCallbackReader) and hmac.compare_digest(other._key, self._key)


def bare(name: str) -> str:
    """A message's id without its chat: `true_15551234567@c.us_AAAA` is `AAAA`."""
    found = _WRAPPED.fullmatch(name)
    return found[1] if found else name


def _receipt(body: Mapping[str, Any], now: int) -> Receipt | None:
    payload = body.get("payload")
    if not isinstance(payload, dict) or payload.get("fromMe") is False:
        return None  # messages of others have acks, too
    ack, name = payload.get("ack"), valid_name(payload.get("id"))
    what = ACKS.get(ack) if type(ack) is int else None
    if what is None or name is None:
        return None
    millis = body.get("timestamp")
    at = provider_time(millis * 1000 if type(millis) is int else None, now=now)
    session = str(body.get("session"))
    if what is not ReceiptStatus.UNDELIVERED:
        return Receipt(bare(name), what, at, session)
    return Receipt(bare(name), what, at, session, None, "the phone could not send it", Category.TEMPORARY)


def reader(settings: WhatsappSessionSettings, _base: str | None) -> WahaCallbackReader | None:
    """The callback reader of a channel; None without hmac_key or with another server."""
    if settings.hmac_key is None or settings.server is not SessionServer.WAHA:
        return None
    return WahaCallbackReader(settings.session, settings.hmac_key)
