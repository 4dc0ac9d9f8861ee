"""Signs outgoing and verifies incoming webhooks (Standard Webhooks 1.0.0).

The signed text is `id.timestamp.body` with the exact bytes of the body. An id with a dot is rejected on both
sides, because two different (id, timestamp) pairs could then give the same signed text. Several secrets give
several signatures, so that a secret can be rotated without interruption.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64  # bytes of a secret
TOLERANCE = timedelta(minutes=5)
_ENDPOINT = b"tidings endpoint secret 1"
MOST_SIGNATURES = 16  # per request: more only cost time


class BadSignature(Exception):
    """The request is not signed with a known secret; the text says why."""


SigningKey = hmac.HMAC  # with the secret already mixed in: copying it halves the cost of a signature


def parse_secret(text: str) -> SigningKey:
    """Parse a secret of `whsec_` and base64. The error never repeats the secret."""
    if not text.startswith(PREFIX):
        raise ValueError(f"a signing secret must start with {PREFIX}")
    encoded = text[len(PREFIX) :].rstrip("=")
    try:
        key = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"a signing secret must be base64 after {PREFIX}") from error
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"a signing secret must have {SHORTEST} to {LONGEST} bytes, not {len(key)}")
    return hmac.new(key, digestmod="sha256")


def derived_secret(root: SigningKey, *names: str) -> str:
    """Derive the secret for these names; it reveals neither the root nor other secrets."""
    making = root.copy()
    making.update(b"\0".join([_ENDPOINT, *(name.encode() for name in names)]))
    return PREFIX + b64encode(making.digest()).decode()


def sign(keys: Sequence[SigningKey], id_: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: one `v1,` signature per key."""
    if "." in id_:
        raise ValueError("an id with a dot cannot be signed")
    text = b"%b.%d.%b" % (id_.encode(), timestamp, body)
    return " ".join([_signature(key, text) for key in keys])


def _signature(key: SigningKey, text: bytes) -> str:
    signing = key.copy()
    signing.update(text)
    return f"v1,{b64encode(signing.digest()).decode()}"


def signature_headers(keys: Sequence[SigningKey], id_: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the three headers of one attempt; without keys only the first two."""
    named = {"webhook-id": id_, "webhook-timestamp": str(timestamp)}
    if keys:
        named["webhook-signature"] = sign(keys, id_, timestamp, body)
    return named


def verify(keys: Sequence[SigningKey], received: Mapping[str, str], body: bytes, *, now: int) -> str:
    """Return the id of a request signed with one of the keys within five minutes; `now` is in seconds."""
    given = {name.lower(): value for name, value in received.items()}
    id_, timestamp = given.get("webhook-id", ""), _seconds(given.get("webhook-timestamp", ""))
    if not id_ or "." in id_:
        raise BadSignature("webhook-id is missing or contains a dot")
    if abs(timestamp - now) > TOLERANCE.total_seconds():
        raise BadSignature("webhook-timestamp differs by more than five minutes")
    candidates = _candidates(given.get("webhook-signature", ""))
    expected = [sign([key], id_, timestamp, body).encode() for key in keys]
    # No early exit at the first match: the time must not reveal which key or signature matched.
    if not sum(hmac.compare_digest(one, other) for one in expected for other in candidates):
        raise BadSignature("no signature matches")
    return id_


def _seconds(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 12):
        raise BadSignature("webhook-timestamp is missing or not a number of seconds")
    return int(value)


def _candidates(value: str) -> list[bytes]:
    parts = value.split(" ", MOST_SIGNATURES)
    if len(parts) > MOST_SIGNATURES:
        raise BadSignature(f"more than {MOST_SIGNATURES} signatures")
    return [part.encode() for part in parts if part.startswith("v1,")]
