"""WhatsApp Cloud webhooks: verification challenge, signature and statuses.

One app serves all its numbers at one URL, so a webhook may concern another of our channels. Order is not
guaranteed: read may come before delivered, and delivered may never come.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from typing import Any

from ...model.task import Category
from ...model.time import SECOND
from ...wire.webhook_signatures import BadSignature
from ..channels.whatsapp_cloud import WhatsAppCloudSettings, outcome_of
from .base import (
    Callback,
    CallbackContent,
    CallbackReader,
    Receipt,
    ReceiptStatus,
    json_objects,
    own_id,
    parse_object,
    provider_time,
    reason_of,
    valid_name,
)

HEADER = "x-hub-signature-256"
STATUSES: Mapping[str, ReceiptStatus] = {
    "sent": ReceiptStatus.SENT,
    "delivered": ReceiptStatus.DELIVERED,
    "read": ReceiptStatus.READ,
    "played": ReceiptStatus.READ,
    "failed": ReceiptStatus.UNDELIVERED,
}
_MAX_REASON_LENGTH = 500


class WhatsAppCloudCallbackReader(CallbackReader):
    """Reads the webhooks of one business number."""

    kind, provider = "whatsapp_cloud", "WhatsApp"

    def __init__(self, number: str, secret: str, verify_token: str | None) -> None:
        self.account = number
        self._secret = secret.encode()
        self._verify_token = verify_token

    def verify(self, call: Callback) -> None:
        """Check `sha256=` and the HMAC of the raw body."""
        expected = "sha256=" + hmac.digest(self._secret, call.body, "sha256").hex()
        if not hmac.compare_digest(call.headers.get(HEADER, "").encode(), expected.encode()):
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """Parse all statuses; other content goes to the listener."""
        body = parse_object(call.body)
        values = list(_values(body))
        receipts = [
            receipt
            for value in values
            for status in json_objects(value.get("statuses"))
            if (receipt := _receipt(value, status, now)) is not None
        ]
        is_all = bool(values) and all("statuses" in value and "messages" not in value for value in values)
        return CallbackContent(receipts, None if is_all else body)

    def challenge(self, query: Mapping[str, str]) -> str:
        """Return the challenge if verify_token matches."""
        token = (self._verify_token or "").encode()
        fits = hmac.compare_digest(query.get("hub.verify_token", "").encode(), token)
        if not token or not fits or query.get("hub.mode") != "subscribe":
            raise BadSignature("hub.verify_token is missing or wrong")
        return query.get("hub.challenge", "")

    def trusts(self, other: CallbackReader) -> bool:
        """Whether both numbers belong to the same app."""
        return isinstance(other, WhatsAppCloudCallbackReader) and hmac.compare_digest(other._secret, self._secret)


def _values(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in json_objects(body.get("entry")):
        for change in json_objects(entry.get("changes")):
            value = change.get("value")
            if isinstance(value, dict):
                yield value


def _receipt(value: Mapping[str, Any], status: Mapping[str, Any], now: int) -> Receipt | None:
    what, name = STATUSES.get(str(status.get("status"))), valid_name(status.get("id"))
    if what is None or name is None:
        return None
    metadata = value.get("metadata")
    account = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
    seconds = str(status.get("timestamp"))
    at = int(seconds) * SECOND if seconds.isascii() and seconds.isdigit() and len(seconds) < 12 else None
    why = _why(status) if what is ReceiptStatus.UNDELIVERED else ()
    own = own_id(status.get("biz_opaque_callback_data"))
    return Receipt(name, what, provider_time(at, now=now), str(account), own, *why)


def _why(status: Mapping[str, Any]) -> tuple[str, Category, bool]:
    """The first error's text, its category by code, and whether it is an opt-out."""
    error = next(iter(json_objects(status.get("errors"))), {})
    data = error.get("error_data")
    details = data.get("details") if isinstance(data, dict) else None
    code = error.get("code")
    said = [part for part in (error.get("title") or error.get("message"), details) if isinstance(part, str)]
    reason = ": ".join(dict.fromkeys([f"code {code}", *said]))[:_MAX_REASON_LENGTH]
    known = outcome_of(code, reason, attempt=1) if type(code) is int else None
    return reason_of(known) if known is not None else (reason, Category.PERMANENT, False)


def reader(settings: WhatsAppCloudSettings, _base: str | None) -> WhatsAppCloudCallbackReader | None:
    """The callback reader of a channel; None without app_secret."""
    if settings.app_secret is None:
        return None
    return WhatsAppCloudCallbackReader(settings.phone_number_id, settings.app_secret, settings.verify_token)
