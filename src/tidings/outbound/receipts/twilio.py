"""Twilio status callbacks, signed over the called URL and the sorted form fields.

The URL is built from our public address, because a proxy may have changed the request's. Our own message id
is in its query and covered by the signature.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, urlsplit

from ...model.task import Category
from ...wire.webhook_signatures import BadSignature
from ..channels.twilio import TwilioSettings, outcome_of
from .base import Callback, CallbackContent, CallbackReader, Receipt, ReceiptStatus, own_id, reason_of, valid_name

HEADER = "x-twilio-signature"
SETTINGS_HEADER = "x-twilio-webhooks-signature-settings"
ALGORITHMS: Mapping[str, str] = {"HMAC_SHA1": "sha1", "HMAC_SHA256": "sha256"}
MAX_FIELDS = 200
STATUSES: Mapping[str, ReceiptStatus] = {
    **dict.fromkeys(("accepted", "scheduled", "queued", "sending", "sent"), ReceiptStatus.SENT),
    "delivered": ReceiptStatus.DELIVERED,
    "read": ReceiptStatus.READ,
    **dict.fromkeys(("undelivered", "failed", "canceled"), ReceiptStatus.UNDELIVERED),
}
WORDS: Mapping[int, str] = {
    30001: "the queue is full",
    30002: "the account is suspended",
    30003: "the handset is unreachable: off, or without signal",
    30004: "the message was blocked",
    30005: "the number does not exist",
    30006: "a landline or an unreachable carrier",
    30007: "filtered by the carrier or Twilio",
    30008: "unknown error at the carrier",
    30022: "the rate limit of the 10DLC campaign",
    30023: "the daily cap of the 10DLC brand",
    30034: "the sender is not registered",
}
"""Meanings of error codes; callbacks contain only the number."""

_PORTS = {"https": 443, "http": 80}
_MAX_REASON_LENGTH = 500


class TwilioCallbackReader(CallbackReader):
    """Reads the callbacks of one account; `base` is our public URL."""

    kind, provider = "twilio", "Twilio"

    def __init__(self, account: str, token: str, base: str, shared_key: str = "") -> None:
        self.account = account
        self._token, self._shared_key = token.encode(), shared_key.encode()
        self._base = base

    def verify(self, call: Callback) -> None:
        """Check the base64 HMAC; Twilio may or may not sign the default port.

        The auth token signs with SHA-1. A SharedKey signs with the algorithm that a second header names.
        """
        given = call.headers.get(HEADER, "").encode()
        chosen = re.search(r"algorithm\s*=\s*([^,\s]+)", call.headers.get(SETTINGS_HEADER, ""))
        key, name = (self._shared_key, chosen[1].upper()) if chosen else (self._token, "HMAC_SHA1")
        if not key:
            option = "shared_key to the secret of the SharedKey" if chosen else "auth_token"
            raise BadSignature(f"the callback is signed with {name}; set the channel's {option}")
        if name not in ALGORITHMS:
            raise BadSignature(f"{SETTINGS_HEADER} names the unknown algorithm {name[:40]}")
        fields, urls = _fields(call.body), spellings(self._base + call.target)
        if not sum(hmac.compare_digest(given, sign(key, url, fields, ALGORITHMS[name]).encode()) for url in urls):
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """Parse one status; an inbound text goes to the listener."""
        fields = {name: values[-1] for name, values in _fields(call.body).items()}
        status = fields.get("MessageStatus") or fields.get("SmsStatus") or ""
        if status in ("received", "receiving") or "Body" in fields:
            return CallbackContent(heard=fields)
        what, name = STATUSES.get(status), valid_name(fields.get("MessageSid") or fields.get("SmsSid"))
        if what is None or name is None:
            return CallbackContent()
        own = own_id(parse_qs(urlsplit(call.target).query).get("message", [""])[0])
        why = _why(fields) if what is ReceiptStatus.UNDELIVERED else ()
        account = fields.get("AccountSid", self.account)
        return CallbackContent([Receipt(name, what, now, account, own, *why)])

    def trusts(self, other: CallbackReader) -> bool:
        """Whether both readers have the same keys."""
        if not isinstance(other, TwilioCallbackReader):
            return False
        return other._shared_key == self._shared_key and hmac.compare_digest(other._token, self._token)


def sign(token: bytes, url: str, fields: Mapping[str, Sequence[str]], algorithm: str = "sha1") -> str:
    """Twilio's signature over the URL and each field name with its values, sorted."""
    parts = [name + value for name in sorted(fields) for value in sorted(set(fields[name]))]
    return b64encode(hmac.digest(token, "".join([url, *parts]).encode(), algorithm)).decode()


def spellings(url: str) -> list[str]:
    """The URL with and without its default port."""
    parts = urlsplit(url)
    usual = _PORTS.get(parts.scheme)
    host = parts.netloc.removesuffix(f":{usual}")
    if parts.port not in (None, usual):
        return [url]
    return [parts._replace(netloc=netloc).geturl() for netloc in (host, f"{host}:{usual}")]


def _fields(body: bytes) -> Mapping[str, list[str]]:
    """The form fields; empty if the body is not a form, so that no signature matches."""
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return {}


def _why(fields: Mapping[str, str]) -> tuple[str, Category, bool]:
    text = fields.get("ErrorCode", "")
    code = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    said = fields.get("ErrorMessage") or WORDS.get(code, "")
    words = ": ".join(part for part in (text, said) if part)
    reason = (words or f"Twilio reports {fields.get('MessageStatus', 'failed')}")[:_MAX_REASON_LENGTH]
    known = outcome_of(code, reason)
    return (reason, Category.PERMANENT, False) if known is None else reason_of(known)


def reader(settings: TwilioSettings, base: str | None) -> TwilioCallbackReader | None:
    """The callback reader of a channel; None unless a key, public URL and status_callback are set."""
    token, shared_key = settings.auth_token or "", settings.shared_key or ""
    if not (token or shared_key) or base is None or settings.status_callback is None:
        return None
    if not settings.status_callback.startswith(f"{base}/callbacks/"):
        return None
    return TwilioCallbackReader(settings.account_sid, token, base, shared_key)
