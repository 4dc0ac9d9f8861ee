"""Tokens: proof that a dispatcher gave out one claim of one task on one channel.

A token is an HMAC under a secret that only the database has. Whoever has the broker's password alone cannot
make one, so a report counts only for what was dispatched, on the channel on which it was; a dispatcher that
was started again, or one that takes over, checks the same tokens.
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
    """Makes and checks tokens. Without a secret of its own it needs `load` first."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)  # nobody's, until the database's is read

    async def load(self, store: Store, cipher: Cipher) -> None:
        """Take the secret of this database; the first dispatcher creates it."""
        if not (found := await store.read("secret_find", key=_NAME)):
            value = await cipher.encrypt(_PLACE, secrets.token_hex(32))
            await store.write([Step("secret_add", {"name": _NAME, "value": value})])
            found = await store.read("secret_find", key=_NAME)
        self._secret = bytes.fromhex(cipher.decrypt(_PLACE, found[0]["value"]))

    def of(self, channel: str, id_: int, claim: int) -> str:
        """The token of a claim."""
        said = f"{id_}.{claim}.{channel}".encode()
        return hmac.digest(self._secret, said, "sha256")[:_SIZE].hex()

    def marker(self, node: int, number: int) -> int:
        """The number of a marker, which nobody else can guess."""
        return int.from_bytes(hmac.digest(self._secret, f"marker.{node}.{number}".encode(), "sha256")[:7])

    def sift(self, report: TransportReport) -> tuple[TransportReport, int]:
        """What a report says of claims that were dispatched on its channel, and how much else it says."""
        said = [
            *report.started,
            *(told.key for told in report.outcomes),
            *(key for key, _ in report.returned),
        ]
        false = {key for key in said if not self._holds(report.channel, key)}
        if not false:
            return report, 0
        genuine = report._replace(
            started=[key for key in report.started if key not in false],
            outcomes=[told for told in report.outcomes if told.key not in false],
            returned=[entry for entry in report.returned if entry[0] not in false],
        )
        return genuine, len(false)

    def _holds(self, channel: str, key: ClaimKey) -> bool:
        id_, claim, token = key
        return hmac.compare_digest(self.of(channel, id_, claim).encode(), token.encode())
