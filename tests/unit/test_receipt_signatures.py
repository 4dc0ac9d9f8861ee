"""Callbacks: each provider's own signature, with the vectors of the reference; what a callback says."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from twilio.request_validator import RequestValidator

from tidings.model.errors import Invalid
from tidings.model.task import Category
from tidings.model.time import SECOND
from tidings.outbound.receipts import telegram, twilio, whatsapp_cloud, whatsapp_session
from tidings.outbound.receipts.base import Callback, CallbackReader, Receipt, ReceiptStatus
from tidings.outbound.receipts.delivery_status import describe_receipts, overall_status
from tidings.outbound.receipts.receipt_recorder import merge_receipts
from tidings.wire.webhook_signatures import BadSignature

NOW = 1_790_000_060_000_000
BASE = "https://mycompany.com"
SID = "SM0123456789abcdef0123456789abcdef"
ACCOUNT = "AC0123456789abcdef0123456789abcdef"


def hub(body: bytes, key: str = "secret") -> dict[str, str]:
    """The header of WhatsApp Cloud."""
    return {whatsapp_cloud.HEADER: "sha256=" + hmac.digest(key.encode(), body, "sha256").hex()}


def waha(body: bytes, key: str = "my-secret-key") -> dict[str, str]:
    """The headers of WAHA."""
    signed = hmac.digest(key.encode(), body, "sha512").hex()
    return {whatsapp_session.HEADER: signed, whatsapp_session.ALGORITHM: "sha512"}


def form(fields: dict[str, str], target: str = "/callbacks/texts?message=0190-a1") -> Callback:
    """A callback of Twilio's, signed."""
    values = {name: [value] for name, value in fields.items()}
    signed = twilio.sign(b"12345", BASE + target, values)
    return Callback(target, {twilio.HEADER: signed}, urlencode(fields).encode())


def status(status: str, **more: str) -> Callback:
    """A status of one text."""
    return form({"MessageSid": SID, "MessageStatus": status, "AccountSid": ACCOUNT, **more})


READERS: dict[str, CallbackReader] = {
    "telegram": telegram.TelegramCallbackReader("123456", "a-secret-of-ours_1"),
    "whatsapp_cloud": whatsapp_cloud.WhatsAppCloudCallbackReader("1234567890", "secret", "our-token"),
    "whatsapp_session": whatsapp_session.WahaCallbackReader("default", "my-secret-key"),
    "twilio": twilio.TwilioCallbackReader(ACCOUNT, "12345", BASE),
}
WAHA_BODY = b'{"event":"message","session":"default","engine":"WEBJS"}'
GENUINE: dict[str, Callback] = {
    "telegram": Callback("/callbacks/bot", {telegram.HEADER: "a-secret-of-ours_1"}, b'{"update_id":1}'),
    "whatsapp_cloud": Callback("/callbacks/wa", hub(b'{"entry":[]}'), b'{"entry":[]}'),
    "whatsapp_session": Callback("/callbacks/home", waha(WAHA_BODY), WAHA_BODY),
    "twilio": status("delivered"),
}


# -- the vectors of the reference


def test_whatsapp_cloud_signs_as_in_its_vector() -> None:
    """HMAC-SHA256 of the raw body under the app's secret."""
    signed = "sha256=0329a06b62cd16b33eb6792be8c60b158d89a2ee3a876fce9a881ebb488c0914"

    READERS["whatsapp_cloud"].verify(Callback("/", {whatsapp_cloud.HEADER: signed}, b"test"))


def test_waha_signs_as_in_its_vector() -> None:
    """HMAC-SHA512 of the raw body."""
    signed = (
        "208f8a55dde9e05519e898b10b89bf0d0b3b0fdf11fdbf09b6b90476301b98d8"
        "097c462b2b17a6ce93b6b47a136cf2e78a33a63f6752c2c1631777076153fa89"
    )

    READERS["whatsapp_session"].verify(Callback("/", {whatsapp_session.HEADER: signed}, WAHA_BODY))


def test_twilio_signs_as_in_its_vector() -> None:
    """HMAC-SHA1 of the URL and the sorted fields, in whatever order they came."""
    fields = {
        "To": "+18005551212",
        "Digits": "1234",
        "CallSid": "CA1234567890ABCDE",
        "From": "+12349013030",
        "Caller": "+12349013030",
    }
    headers = {twilio.HEADER: "0/KCTR6DLpKmkAf8muzZqo1nDgQ="}

    READERS["twilio"].verify(Callback("/myapp.php?foo=1&bar=2", headers, urlencode(fields).encode()))


SHARED = twilio.TwilioCallbackReader(ACCOUNT, "12345", BASE, "shared-secret")


@pytest.mark.parametrize(("algorithm", "secret"), [(None, "12345"), ("HMAC_SHA256", "shared-secret")])
def test_signatures_agree_with_twilios_own_validator(algorithm: str | None, secret: str) -> None:
    """The auth token signs with SHA-1, a SharedKey with the algorithm of the second header."""
    fields, target = {"MessageSid": SID, "MessageStatus": "delivered"}, "/callbacks/texts?message=0190-a1"
    judge = RequestValidator(secret)
    headers = {twilio.HEADER: judge.compute_signature(BASE + target, fields, algorithm)}
    if algorithm is not None:
        headers[twilio.SETTINGS_HEADER] = f"key=webhooks_sharedkey_1,algorithm={algorithm}"
    call = Callback(target, headers, urlencode(fields).encode())

    SHARED.verify(call)
    with pytest.raises(BadSignature, match="missing or wrong"):
        SHARED.verify(call._replace(body=call.body + b"1"))
    ours = twilio.sign(secret.encode(), BASE + target, {name: [value] for name, value in fields.items()},
                       twilio.ALGORITHMS[algorithm or "HMAC_SHA1"])  # fmt: skip
    assert judge.validate(BASE + target, fields, ours, algorithm)


def test_a_refused_twilio_signature_says_why() -> None:
    """Which key is missing, or which algorithm is unknown."""
    call = status("delivered")
    for algorithm, words in (("HMAC_SHA256", "shared_key"), ("HMAC_SHA256, x=1", "shared_key")):
        signed = call._replace(headers={**call.headers, twilio.SETTINGS_HEADER: f"key=k,algorithm={algorithm}"})
        with pytest.raises(BadSignature, match=words):
            READERS["twilio"].verify(signed)
    odd = call._replace(headers={**call.headers, twilio.SETTINGS_HEADER: "key=k,algorithm=HMAC_MD5"})
    with pytest.raises(BadSignature, match="unknown algorithm HMAC_MD5"):
        SHARED.verify(odd)
    with pytest.raises(BadSignature, match="auth_token"):
        twilio.TwilioCallbackReader(ACCOUNT, "", BASE, "shared-secret").verify(call)


# -- who is refused (S8)

Spoil = Callable[[Callback], Callback]
SPOILT: dict[str, Spoil] = {
    "no signature": lambda call: call._replace(headers={}),
    "an empty one": lambda call: call._replace(headers=dict.fromkeys(call.headers, "")),
    "a wrong one": lambda call: call._replace(headers=dict.fromkeys(call.headers, "sha256=00")),
    "one that is no ASCII": lambda call: call._replace(headers=dict.fromkeys(call.headers, "é\x00")),
    "one that is cut": lambda call: call._replace(headers={name: value[:-1] for name, value in call.headers.items()}),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize("kind", READERS)
def test_a_callback_without_a_valid_signature_is_refused(kind: str, spoil: Spoil) -> None:
    """Whatever is wrong with it."""
    READERS[kind].verify(GENUINE[kind])
    with pytest.raises(BadSignature):
        READERS[kind].verify(spoil(GENUINE[kind]))


@pytest.mark.parametrize("kind", ["whatsapp_cloud", "whatsapp_session", "twilio"])
def test_a_signature_holds_for_its_own_body_only(kind: str) -> None:
    """One byte more, one byte less, one byte changed."""
    body = GENUINE[kind].body
    for other in (body + b"1", body[:-1], body.replace(b"e", b"f", 1), b""):
        with pytest.raises(BadSignature):
            READERS[kind].verify(GENUINE[kind]._replace(body=other))


def test_twilios_signature_holds_for_its_own_address_only() -> None:
    """The message's id in it cannot be exchanged; the usual port may be written or not."""
    for target in ("/callbacks/texts?message=0190-a2", "/callbacks/others?message=0190-a1", "/callbacks/texts"):
        with pytest.raises(BadSignature):
            READERS["twilio"].verify(GENUINE["twilio"]._replace(target=target))
    with_port = twilio.TwilioCallbackReader(ACCOUNT, "12345", "https://mycompany.com:443")
    with_port.verify(GENUINE["twilio"])
    with pytest.raises(BadSignature):
        twilio.TwilioCallbackReader(ACCOUNT, "12345", "https://mycompany.com:8443").verify(GENUINE["twilio"])


def test_only_whatsapp_cloud_has_a_verification_challenge() -> None:
    """The bare challenge, or nothing."""
    asked = {"hub.mode": "subscribe", "hub.verify_token": "our-token", "hub.challenge": "1158201444"}
    assert READERS["whatsapp_cloud"].challenge(asked) == "1158201444"
    without = whatsapp_cloud.WhatsAppCloudCallbackReader("1", "secret", None)
    for reader, query in [
        (READERS["whatsapp_cloud"], {**asked, "hub.verify_token": "another"}),
        (READERS["whatsapp_cloud"], {**asked, "hub.mode": "unsubscribe"}),
        (READERS["whatsapp_cloud"], {}),
        (without, {**asked, "hub.verify_token": ""}),
        (READERS["twilio"], asked),
        (READERS["telegram"], asked),
        (READERS["whatsapp_session"], asked),
    ]:
        with pytest.raises(BadSignature):
            reader.challenge(query)


# -- what they say


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("queued", ReceiptStatus.SENT),
        ("sent", ReceiptStatus.SENT),
        ("delivered", ReceiptStatus.DELIVERED),
        ("read", ReceiptStatus.READ),
    ],
)
def test_a_status_of_twilios_is_a_receipt(said: str, what: ReceiptStatus) -> None:
    """With our own id from the address."""
    assert READERS["twilio"].read(status(said), now=NOW).receipts == [Receipt(SID, what, NOW, ACCOUNT, "0190-a1")]


@pytest.mark.parametrize(
    ("code", "category"),
    [
        ("30001", Category.THROTTLING),
        ("30003", Category.TEMPORARY),
        ("30005", Category.PERMANENT),
        ("30034", Category.PERMANENT),
        ("39999", Category.PERMANENT),
        ("", Category.PERMANENT),
    ],
)
def test_a_failure_in_a_twilio_callback_has_its_reason_and_category(code: str, category: Category) -> None:
    """By the same table as an answer."""
    (receipt,) = READERS["twilio"].read(status("undelivered", ErrorCode=code), now=NOW).receipts

    assert (receipt.what, receipt.category) == (ReceiptStatus.UNDELIVERED, category)
    assert receipt.reason is not None and code in receipt.reason


def test_a_part_of_a_text_proves_nothing_about_the_whole() -> None:
    """Its id has the part's number, so it is no id of a message."""
    call = form({"MessageSid": SID, "MessageStatus": "sent"}, "/callbacks/texts?message=0190-a1.2")

    assert READERS["twilio"].read(call, now=NOW).receipts[0].message is None


def cloud(*statuses: dict[str, Any], **value: Any) -> bytes:
    """A webhook of WhatsApp Cloud's."""
    inner = {"metadata": {"phone_number_id": "1234567890"}, "statuses": list(statuses), **value}
    return orjson.dumps({"entry": [{"changes": [{"field": "messages", "value": inner}]}]})


def test_statuses_of_whatsapp_cloud_are_receipts() -> None:
    """Several in one call; the provider's time; a failure with its code, its words and our hint."""
    failed = {
        "id": "wamid.2",
        "status": "failed",
        "timestamp": "1760000001",
        "errors": [{"code": 131047, "title": "Re-engagement message", "error_data": {"details": "over 24 h"}}],
    }
    read = {"id": "wamid.1", "status": "read", "timestamp": "1760000000", "biz_opaque_callback_data": "0190-a1"}
    body = cloud(read, failed, {"id": "wamid.3", "status": "unheard-of"}, {"status": "read"})
    news = READERS["whatsapp_cloud"].read(Callback("/", {}, body), now=NOW)

    first, second = news.receipts
    assert first == Receipt("wamid.1", ReceiptStatus.READ, 1_760_000_000 * SECOND, "1234567890", "0190-a1")
    assert (second.what, second.category) == (ReceiptStatus.UNDELIVERED, Category.PERMANENT)
    assert second.reason is not None
    assert "131047: Re-engagement message: over 24 h" in second.reason
    assert "only a template is allowed" in second.reason
    assert news.heard is None


def test_a_time_in_the_future_or_none_at_all_is_now() -> None:
    """A provider's clock does not lead us astray."""
    for stamp in ("9999999999", "0", "soon", ""):
        body = cloud({"id": "wamid.1", "status": "delivered", "timestamp": stamp})
        (receipt,) = READERS["whatsapp_cloud"].read(Callback("/", {}, body), now=NOW).receipts
        assert receipt.at == NOW, stamp


@pytest.mark.parametrize(
    ("ack", "what"),
    [
        (-1, ReceiptStatus.UNDELIVERED),
        (1, ReceiptStatus.SENT),
        (2, ReceiptStatus.DELIVERED),
        (3, ReceiptStatus.READ),
        (4, ReceiptStatus.READ),
    ],
)
def test_an_ack_of_wahas_is_a_receipt(ack: int, what: ReceiptStatus) -> None:
    """Known by the id within the name, for the chat around it is not always the same."""
    payload = {"id": "true_15551234567@c.us_AAAA", "fromMe": True, "ack": ack}
    body = {"event": "message.ack", "session": "default", "timestamp": 1_760_000_000_000, "payload": payload}
    (receipt,) = READERS["whatsapp_session"].read(Callback("/", {}, orjson.dumps(body)), now=NOW).receipts

    assert (receipt.name, receipt.what, receipt.at) == ("AAAA", what, 1_760_000_000 * SECOND)
    assert READERS["whatsapp_session"].names("true_99@lid_AAAA") == ("AAAA",)


def test_inbound_messages_in_callbacks_go_to_the_listener() -> None:
    """What people write, in the provider's own words; acks of what they wrote are nobody's."""
    heard = {
        "telegram": Callback("/", {}, b'{"update_id":7,"message":{"text":"hi"}}'),
        "whatsapp_cloud": Callback("/", {}, cloud(messages=[{"id": "wamid.Y", "text": {"body": "hi"}}])),
        "whatsapp_session": Callback("/", {}, b'{"event":"message","payload":{"body":"hi"}}'),
        "twilio": form({"MessageSid": "SM1", "SmsStatus": "received", "Body": "hi"}),
    }
    for kind, call in heard.items():
        news = READERS[kind].read(call, now=NOW)
        assert news.heard is not None and not news.receipts, kind
    theirs = {"event": "message.ack", "payload": {"id": "false_1@c.us_A", "fromMe": False, "ack": 3}}
    assert not READERS["whatsapp_session"].read(Callback("/", {}, orjson.dumps(theirs)), now=NOW).receipts


@pytest.mark.parametrize("kind", ["telegram", "whatsapp_cloud", "whatsapp_session"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'"x"'])
def test_an_unreadable_callback_body_is_a_clear_error(kind: str, body: bytes) -> None:
    """Never a surprise."""
    with pytest.raises(Invalid, match="callback"):
        READERS[kind].read(Callback("/", {}, body), now=NOW)


def test_malformed_parts_of_a_callback_are_ignored() -> None:
    """Whatever stands where an object, a list or a text should be."""
    for body in (b'{"entry":[{"changes":[{"value":7}]}]}', b'{"entry":{"a":1}}', cloud({"id": 7}, {"id": "x"})):
        assert not READERS["whatsapp_cloud"].read(Callback("/", {}, body), now=NOW).receipts
    for payload in (None, 7, {}, {"id": 7, "ack": 2}, {"id": "a", "ack": "2"}, {"id": "a b", "ack": 2}):
        body = orjson.dumps({"event": "message.ack", "payload": payload})
        assert not READERS["whatsapp_session"].read(Callback("/", {}, body), now=NOW).receipts
    for call in (form({}), form({"MessageStatus": "delivered"}), form({"MessageSid": "x"})):
        assert not READERS["twilio"].read(call, now=NOW).receipts


# -- what they amount to


def told(what: ReceiptStatus, at: int = NOW, name: str = "wamid.1", **more: Any) -> tuple[str, Receipt]:
    """One receipt of one channel."""
    return "wa", Receipt(name, what, at, "1", **more)


def test_receipts_of_one_message_become_one_row() -> None:
    """The earliest of each; read implies delivered; a bare 'sent' without our id is no news."""
    rows = merge_receipts(
        [
            told(ReceiptStatus.READ, NOW),
            told(ReceiptStatus.DELIVERED, NOW - 5),
            told(ReceiptStatus.SENT, name="wamid.2"),
        ]
    )

    assert rows == [{"channel": "wa", "name": "wamid.1", "message": None, "delivered_at": NOW - 5, "read_at": NOW}]
    assert merge_receipts([told(ReceiptStatus.READ)])[0]["delivered_at"] == NOW


def standing(**facts: Any) -> dict[str, Any]:
    """A row as it is kept."""
    empty = dict.fromkeys(("delivered_at", "read_at", "undelivered_at", "reason", "category"))
    return {"name": "n", "last": True, **empty, **facts}


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([], None),
        ([standing()], None),
        ([standing(delivered_at=1)], ReceiptStatus.DELIVERED),
        ([standing(delivered_at=1, read_at=2)], ReceiptStatus.READ),
        ([standing(undelivered_at=1)], ReceiptStatus.UNDELIVERED),
        ([standing(undelivered_at=1, delivered_at=2)], ReceiptStatus.DELIVERED),
        ([standing(delivered_at=1, last=False), standing()], None),
        ([standing(delivered_at=1, last=False), standing(delivered_at=2)], ReceiptStatus.DELIVERED),
        ([standing(undelivered_at=1, last=False), standing(delivered_at=2)], ReceiptStatus.UNDELIVERED),
    ],
)
def test_receipts_of_a_message_have_one_overall_status(rows: list[dict[str, Any]], word: ReceiptStatus | None) -> None:
    """Delivered outweighs a failure before it; of parts the last decides, and one that failed counts."""
    assert overall_status(rows) == word
    assert (describe_receipts(rows) is None) == (word is None)
