"""Delivery receipts with signatures, as the real providers send them."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import orjson

from tidings.model.time import SECOND

from .waha_payloads import ME, engine_of, environment_of
from .whatsapp_webhooks import contact, webhook

RECEIPT_KINDS = ("sent", "delivered", "read", "failed")
TITLES: Mapping[int, str] = {131026: "Message undeliverable", 131047: "Re-engagement message"}


class ReceiptOrigin(NamedTuple):
    """A delivered message, and where its receipts go."""

    channel: str
    account: str
    name: str  # the provider's message id
    to: str
    url: str
    secret: str
    echo: str | None = None  # data that the provider echoes to the sender


class CallbackRequest(NamedTuple):
    """One callback to send."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def twilio_receipt(origin: ReceiptOrigin, what: str, code: int | None, at: int) -> CallbackRequest:
    """A status as a form; the signature covers the URL and the sorted fields."""
    failed = {"ErrorCode": str(code or 30003)} if what == "failed" else {}
    status = "undelivered" if what == "failed" else what
    fields = {
        "MessageSid": origin.name,
        "SmsSid": origin.name,
        "MessageStatus": status,
        "SmsStatus": status,
        "AccountSid": origin.account,
        "To": origin.to,
        "ApiVersion": "2010-04-01",
        **failed,
    }
    return twilio_call(origin.url, origin.secret, fields)


def twilio_call(url: str, secret: str, fields: Mapping[str, object]) -> CallbackRequest:
    """Any webhook of Twilio."""
    text = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    signed = b64encode(hmac.digest(secret.encode(), text.encode(), "sha1")).decode()
    headers = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signed}
    return CallbackRequest(url, headers, urlencode(fields).encode())


def whatsapp_cloud_receipt(origin: ReceiptOrigin, what: str, code: int | None, at: int) -> CallbackRequest:
    """A status in Meta's envelope."""
    person = contact(origin.to)
    status: dict[str, object] = {"id": origin.name, "status": what, "timestamp": str(at // SECOND)}
    status |= {"recipient_id": person["wa_id"]} if "wa_id" in person else {}
    status["recipient_user_id"] = person["user_id"]
    if origin.echo is not None:
        status["biz_opaque_callback_data"] = origin.echo
    if what == "failed":
        title = TITLES.get(code or 131026, "Simulated failure")
        details = {"error_data": {"details": title}}
        status["errors"] = [{"code": code or 131026, "title": title, "message": title, **details}]
    return meta_call(origin.url, origin.secret, webhook(origin.account, [person], statuses=[status]))


def meta_call(url: str, secret: str, body: Mapping[str, object]) -> CallbackRequest:
    """Any webhook of Meta."""
    raw = orjson.dumps(body)
    signed = "sha256=" + hmac.digest(secret.encode(), raw, "sha256").hex()
    return CallbackRequest(url, {"content-type": "application/json", "x-hub-signature-256": signed}, raw)


def waha_receipt(origin: ReceiptOrigin, what: str, code: int | None, at: int) -> CallbackRequest:
    """An acknowledgement of WAHA."""
    ack, word = {"sent": (1, "SERVER"), "delivered": (2, "DEVICE"), "read": (3, "READ")}.get(what, (-1, "ERROR"))
    ends = {"from": origin.to, "to": ME["id"], "participant": "", "fromMe": True}
    payload = {"id": origin.name, **ends, "ack": ack, "ackName": word}
    return waha_call(origin.url, origin.secret, "message.ack", origin.account, payload, at)


def waha_call(
    url: str, secret: str, event: str, session: str, payload: Mapping[str, object], at: int
) -> CallbackRequest:
    """Any event of a WAHA session."""
    body = {
        "id": f"evt_{at:x}",
        "timestamp": at // 1000,
        "event": event,
        "session": session,
        "engine": engine_of(session),
        "me": ME,
        "payload": payload,
        "environment": environment_of(session),
    }
    raw = orjson.dumps(body)
    headers = {
        "content-type": "application/json",
        "x-webhook-request-id": f"req_{at:x}",
        "x-webhook-timestamp": str(at // 1000),
    }
    if secret:
        signed = hmac.digest(secret.encode(), raw, "sha512").hex()
        headers |= {"x-webhook-hmac": signed, "x-webhook-hmac-algorithm": "sha512"}
    return CallbackRequest(url, headers, raw)


def telegram_call(url: str, secret: str, update: Mapping[str, object]) -> CallbackRequest:
    """One update; Telegram does not sign it but sends the secret."""
    headers = {"content-type": "application/json"}
    if secret:
        headers["x-telegram-bot-api-secret-token"] = secret
    return CallbackRequest(url, headers, orjson.dumps(update))


RECEIPT_BUILDERS: Mapping[str, Callable[[ReceiptOrigin, str, int | None, int], CallbackRequest]] = {
    "twilio": twilio_receipt,
    "whatsapp_cloud": whatsapp_cloud_receipt,
    "waha": waha_receipt,
}
"""How each provider reports the fate of a message."""

MESSAGE_BUILDERS: Mapping[str, Callable[[str, str, Mapping[str, object]], CallbackRequest]] = {
    "twilio": twilio_call,
    "whatsapp_cloud": meta_call,
    "telegram": telegram_call,
}
"""How a provider sends a person's message."""
