"""Claim tokens: HMAC proofs that one claim of one task was dispatched on one channel.

The secret is stored in the database only. The broker's password alone is not enough to forge a token, so a
report counts only for claims dispatched on its channel. A restarted dispatcher, or one that recovers
another's tasks, verifies the same tokens.
"""

from __future__ import annotations

import hmac
import secrets

from ..store.encryption import Cipher, SecretLocation
from ..store.port import Step, Store
from .wire_format import ClaimKey, TransportReport

_NAME = "dispatch"
_PLACE = SecretLocation("secrets", "", _NAME)
_SIZE = 16  # bytes


class ClaimTokens:
    """Creates and verifies tokens. Without a secret, call `load` first."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)  # random until the database's secret is loaded

    async def load(self, store: Store, cipher: Cipher) -> None:
        """Load the secret of this database; the first dispatcher creates it."""
        if not (found := await store.read("secret_find", key=_NAME)):
            value = await cipher.encrypt(_PLACE, secrets.token_hex(32))
            await store.write([Step("secret_add", {"name": _NAME, "value": value})])
            found = await store.read("secret_find", key=_NAME)
        self._secret = bytes.fromhex(cipher.decrypt(_PLACE, found[0]["value"]))

    def of(self, channel: str, id_: int, claim: int) -> str:
        claim_text = f"{id_}.{claim}.{channel}".encode()
        return hmac.digest(self._secret, claim_text, "sha256")[:_SIZE].hex()

    def marker(self, node: int, number: int) -> int:
        """Return the number of a marker, which cannot be guessed."""
        return int.from_bytes(hmac.digest(self._secret, f"marker.{node}.{number}".encode(), "sha256")[:7])

    def verify(self, report: TransportReport) -> tuple[TransportReport, int]:
        """Return the report without entries whose token is wrong, and the number of those."""
        keys = [*report.started, *(reported.key for reported in report.outcomes), *(key for key, _ in report.returned)]
        invalid = {key for key in keys if not self._is_valid(report.channel, key)}
        if not invalid:
            return report, 0
        genuine = report._replace(
            started=[key for key in report.started if key not in invalid],
            outcomes=[reported for reported in report.outcomes if reported.key not in invalid],
            returned=[entry for entry in report.returned if entry[0] not in invalid],
        )
        return genuine, len(invalid)

    def _is_valid(self, channel: str, key: ClaimKey) -> bool:
        id_, claim, token = key
        return hmac.compare_digest(self.of(channel, id_, claim).encode(), token.encode())
