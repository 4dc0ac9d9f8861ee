"""Twilio's status call-backs: signed over the URL that was called and the sorted fields of the form.

The URL is the one that Twilio was given, so it is put together from our public address and not from what a
proxy made of it. Our own id is in its query, and the signature covers that, too.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, urlsplit

from ...model.task import Category
from ...wire.webhook_signatures import BadSignature
from ..channels.twilio import TwilioSettings, outcome_of
from .base import Callback, CallbackContent, CallbackReader, Receipt, ReceiptStatus, own_id, valid_name

HEADER = "x-twilio-signature"
MOST_FIELDS = 200
STATUSES: Mapping[str, ReceiptStatus] = {
    **dict.fromkeys(("accepted", "scheduled", "queued", "sending", "sent"), ReceiptStatus.SENT),
    "delivered": ReceiptStatus.DELIVERED,
    "read": ReceiptStatus.READ,
    **dict.fromkeys(("undelivered", "failed", "canceled"), ReceiptStatus.UNDELIVERED),
}
WORDS: Mapping[int, str] = {
    30001: "the queue is full",
    30002: "the account is suspended",
    30003: "the handset cannot be reached: off, or without a signal",
    30004: "the message was blocked",
    30005: "there is no such number",
    30006: "a landline, or a carrier that cannot be reached",
    30007: "the carrier or Twilio filtered it",
    30008: "Twilio does not know why either",
    30034: "the sender is not registered",
}
"""What the codes of call-backs mean, for Twilio sends the number alone."""

_PORTS = {"https": 443, "http": 80}
_LONGEST = 500


class TwilioCallbackReader:
    """One account. `base` is our public address, without a path of its own or with the proxy's prefix."""

    kind = "twilio"

    def __init__(self, account: str, token: str, base: str) -> None:
        self.account = account
        self._token = token.encode()
        self._base = base

    def verify(self, call: Callback) -> None:
        """Base64 of an HMAC-SHA1; Twilio may or may not have signed the usual port."""
        given = call.headers.get(HEADER, "").encode()
        fields = _fields(call.body)
        urls = spellings(self._base + call.target)
        if not sum(hmac.compare_digest(given, sign(self._token, url, fields).encode()) for url in urls):
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """One status; a text that somebody sent us is for others."""
        fields = {name: values[-1] for name, values in _fields(call.body).items()}
        status = fields.get("MessageStatus") or fields.get("SmsStatus") or ""
        if status in ("received", "receiving") or "Body" in fields:
            return CallbackContent(heard=fields)
        what, name = STATUSES.get(status), valid_name(fields.get("MessageSid") or fields.get("SmsSid"))
        if what is None or name is None:
            return CallbackContent()
        own = own_id(parse_qs(urlsplit(call.target).query).get("message", [""])[0])
        reason, category = _why(fields) if what is ReceiptStatus.UNDELIVERED else (None, None)
        account = fields.get("AccountSid", self.account)
        return CallbackContent([Receipt(name, what, now, account, own, reason, category)])

    def challenge(self, query: Mapping[str, str]) -> str:
        """Twilio asks nothing."""
        raise BadSignature("Twilio does not ask")

    def names(self, receipt: str) -> Sequence[str]:
        """The SID of each part."""
        return receipt.split()

    def trusts(self, other: CallbackReader) -> bool:
        """Channels of one account."""
        return isinstance(other, TwilioCallbackReader) and hmac.compare_digest(other._token, self._token)


def sign(token: bytes, url: str, fields: Mapping[str, Sequence[str]]) -> str:
    """Twilio's signature: the URL, then each name with its values, in order."""
    parts = [name + value for name in sorted(fields) for value in sorted(set(fields[name]))]
    return b64encode(hmac.digest(token, "".join([url, *parts]).encode(), "sha1")).decode()


def spellings(url: str) -> list[str]:
    """The URL with and without the port that its scheme has anyway."""
    parts = urlsplit(url)
    usual = _PORTS.get(parts.scheme)
    host = parts.netloc.removesuffix(f":{usual}")
    if parts.port not in (None, usual):
        return [url]
    return [parts._replace(netloc=netloc).geturl() for netloc in (host, f"{host}:{usual}")]


def _fields(body: bytes) -> Mapping[str, list[str]]:
    """The fields of a form; none where it is no form, and then no signature fits."""
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}


def _why(fields: Mapping[str, str]) -> tuple[str, Category]:
    text = fields.get("ErrorCode", "")
    code = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    said = fields.get("ErrorMessage") or WORDS.get(code, "")
    words = ": ".join(part for part in (text, said) if part)
    reason = (words or f"Twilio says that it is {fields.get('MessageStatus', 'failed')}")[:_LONGEST]
    known = outcome_of(code, reason)
    return reason, known.category if known is not None else Category.PERMANENT


def reader(settings: TwilioSettings, base: str | None) -> TwilioCallbackReader | None:
    """The reader of an account whose call-backs come here: with its token, and an address of ours."""
    if settings.auth_token is None or base is None or settings.status_callback is None:
        return None
    if not settings.status_callback.startswith(f"{base}/callbacks/"):
        return None
    return TwilioCallbackReader(settings.account_sid, settings.auth_token, base)
