"""Standard Webhooks signatures, against the published vector and the reference library."""

from __future__ import annotations

import time
from base64 import b64encode
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tidings.wire.webhook_signatures import BadSignature, parse_secret, sign, signature_headers, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + b64encode(b"quite another secret of ours").decode()
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1_614_265_330
BODY = b'{"test": 2432232314}'
KEY = parse_secret(SECRET)


def signed(**changed: str) -> dict[str, str]:
    """The headers of the published vector, some of them changed."""
    given = signature_headers([KEY], ID, AT, BODY)
    return {**given, **{name.replace("_", "-"): value for name, value in changed.items()}}


def test_the_published_vector_is_met() -> None:
    """S7: the vector of the specification's own tests."""
    assert sign([KEY], ID, AT, BODY) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.binary(max_size=200).map(lambda raw: raw.hex()), st.integers(0, 2**33))
def test_the_reference_library_signs_the_same(body: str, at: int) -> None:
    """S7: for any body and time."""
    theirs = Webhook(SECRET).sign(ID, datetime.fromtimestamp(at, tz=UTC), body)

    assert sign([KEY], ID, at, body.encode()) == theirs


def test_the_reference_library_accepts_either_secret_during_a_rotation() -> None:
    """S7: several signatures in one header, any may match."""
    now = int(time.time())
    given = signature_headers([parse_secret(OTHER), KEY], ID, now, BODY)

    for secret in (SECRET, OTHER):
        assert Webhook(secret).verify(BODY, given) == {"test": 2432232314}


def test_we_accept_what_the_reference_library_signs() -> None:
    """S8: the other direction."""
    theirs = Webhook(SECRET).sign(ID, datetime.fromtimestamp(AT, tz=UTC), BODY.decode())

    assert verify([KEY], signed(webhook_signature=theirs), BODY, now=AT) == ID


def test_any_of_several_keys_and_signatures_may_match() -> None:
    """S8: rotation on both sides; unknown versions are passed over; names of headers in any case."""
    value = f"v1a,xyz v1,AAAA {sign([KEY], ID, AT, BODY)}"
    given = {name.title(): text for name, text in signed(webhook_signature=value).items()}

    assert verify([parse_secret(OTHER), KEY], given, BODY, now=AT) == ID


@pytest.mark.parametrize("now", [AT - 300, AT + 300])
def test_five_minutes_either_way_are_tolerated(now: int) -> None:
    """S8: clocks differ."""
    assert verify([KEY], signed(), BODY, now=now) == ID


@pytest.mark.parametrize(
    ("changed", "body", "now"),
    [
        ({}, BODY + b" ", AT),
        ({}, BODY, AT + 301),
        ({}, BODY, AT - 301),
        ({"webhook_id": "msg_other"}, BODY, AT),
        ({"webhook_id": ""}, BODY, AT),
        ({"webhook_id": "a.b"}, BODY, AT),
        ({"webhook_timestamp": str(AT + 1)}, BODY, AT),
        ({"webhook_timestamp": ""}, BODY, AT),
        ({"webhook_timestamp": "soon"}, BODY, AT),
        ({"webhook_timestamp": "-5"}, BODY, AT),
        ({"webhook_timestamp": "9" * 5000}, BODY, AT),
        ({"webhook_signature": ""}, BODY, AT),
        ({"webhook_signature": "v1,"}, BODY, AT),
        ({"webhook_signature": "v2," + sign([KEY], ID, AT, BODY)[3:]}, BODY, AT),
        ({"webhook_signature": "v1,\N{SNOWMAN}"}, BODY, AT),
        ({"webhook_signature": " ".join([sign([KEY], ID, AT, BODY)] * 10_000)}, BODY, AT),
    ],
)
def test_a_changed_old_or_malformed_request_is_refused(changed: dict[str, str], body: bytes, now: int) -> None:
    """S8: body, time and id flips, six minutes old, from the future, ten thousand signatures, no header."""
    with pytest.raises(BadSignature):
        verify([KEY], signed(**changed), body, now=now)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_each_header_is_needed(missing: str) -> None:
    """S8: a missing header is refused."""
    given = signed()
    del given[missing]

    with pytest.raises(BadSignature):
        verify([KEY], given, BODY, now=AT)


def test_without_keys_nothing_is_accepted_and_nothing_is_signed() -> None:
    """An empty list of secrets verifies nobody, and sends no empty signature."""
    with pytest.raises(BadSignature):
        verify([], signed(), BODY, now=AT)
    assert signature_headers([], ID, AT, BODY) == {"webhook-id": ID, "webhook-timestamp": str(AT)}


def test_an_id_with_a_dot_is_not_signed() -> None:
    """S7: two pairs of id and time could give the same signed text."""
    with pytest.raises(ValueError, match="dot"):
        sign([KEY], "a.b", AT, BODY)


@pytest.mark.parametrize("size", [24, 32, 64])
def test_a_secret_has_24_to_64_bytes(size: int) -> None:
    """S7: with or without the padding of base64."""
    text = "whsec_" + b64encode(bytes(range(size))).decode()

    assert sign([parse_secret(text)], ID, AT, BODY) == sign([parse_secret(text.rstrip("="))], ID, AT, BODY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        SECRET[6:],
        "whsec_" + b64encode(bytes(23)).decode(),
        "whsec_" + b64encode(bytes(65)).decode(),
        "whsec_not base64 canary canary canary",
        "whsec_" + "A" * 33,
        "whpk_" + SECRET[6:],
    ],
)
def test_a_bad_secret_is_refused_and_never_repeated(text: str) -> None:
    """S7, S9: the error helps, and does not tell the secret."""
    with pytest.raises(ValueError, match="signing secret") as caught:
        parse_secret(text)
    assert text == "" or text[6:] == "" or text[6:] not in str(caught.value)
