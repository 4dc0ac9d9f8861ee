"""Encryption of secrets at rest: AES-256-GCM under keys that are not in the database.

A stored value is `enc:v1:KEYID:` and the base64 of nonce, ciphertext and tag. Its location (table, tenant,
id) is authenticated with it, so a value that was copied to another row is rejected. The first key encrypts,
all keys decrypt: this allows key rotation. A key id is a hash of the key and may be shown.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from ..model.errors import Conflict, Misconfigured, StoreUnusable, TidingsError
from .port import Step, Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "encryption.key"  # beside a SQLite database, if no key is configured
KEY_PATTERN = re.compile(r"[0-9a-f]{64}")
BATCH = 200
_VERSION = "enc:v1:"
_UPDATE = {
    "secret": "reencrypt_secret",
    "subscription": "reencrypt_subscription",
    "subscription_old": "reencrypt_subscription_old",
}
_NONCE = 12  # bytes
_BESIDE = f"{KEY_FILE} beside the database"
_MAKE = "Create a key with: openssl rand -hex 32"


class SecretLocation(NamedTuple):
    """Where a secret is stored. Both secrets of one subscription share a location."""

    table: str
    tenant: str
    id: str


def key_id(key: str) -> str:
    """Return the id of a key: 32 bits of its hash."""
    return hashlib.sha256(b"tidings encryption key " + bytes.fromhex(key)).hexdigest()[:8]


class Cipher:
    """Encrypts and decrypts the secrets of one database.

    `keys` are the configured ones; those of `file` follow. Without any key, the file is created with the
    first secret. If `file` is None, a key must be configured.
    """

    def __init__(self, store: Store, keys: Sequence[str] = (), file: Path | None = None) -> None:
        self._store = store
        self._configured = tuple(keys)
        self._file = file
        self._ciphers: dict[str, AESGCM] = {}  # by key id; the first encrypts

    async def encrypt(self, place: SecretLocation, text: str) -> str:
        """Return the value to store. Raises Conflict without a key, Misconfigured if one is missing."""
        await self.check()
        return self._encrypt(place, text)

    def decrypt(self, place: SecretLocation, stored: str) -> str:
        """Return the secret. Raises Misconfigured if its key is missing, StoreUnusable if it was altered."""
        what = f"the secret of {place.table} {place.id}"
        if not stored.startswith(_VERSION):
            raise StoreUnusable(f"{what} is stored unencrypted", remedy="run: tidings db reencrypt")
        id_, _, value = stored.removeprefix(_VERSION).partition(":")
        if id_ not in self._known(id_):
            raise self._missing(id_[:8])
        from cryptography.exceptions import InvalidTag

        try:
            sealed = b64decode(value, validate=True)
            return self._ciphers[id_].decrypt(sealed[:_NONCE], sealed[_NONCE:], _bound(place)).decode()
        except (InvalidTag, ValueError):
            problem = f"{what} was altered, or copied from another row"
            raise StoreUnusable(problem, remedy="restore it from a backup, or remove it and create it again") from None

    async def check(self, *, allow_clear: bool = False) -> None:
        """Raise an error if a stored secret cannot be decrypted with the available keys."""
        for row in await self._store.read("encryption_used"):
            if not row["used"].startswith(_VERSION):
                if not allow_clear:
                    raise StoreUnusable("the database has unencrypted secrets", remedy="run: tidings db reencrypt")
            elif (id_ := row["used"].removeprefix(_VERSION)) not in self._known(id_):
                raise self._missing(id_)

    async def reencrypt(self, progress: Callable[[int], None] = lambda _: None) -> tuple[str, int]:
        """Encrypt every secret with the first key, in batches. Return the key's id and the number of changes.

        Each batch is one transaction and skips secrets that changed meanwhile, so this can be stopped and
        repeated.
        """
        await self.check(allow_clear=True)
        current, changed = self._first(), 0
        prefix = f"{_VERSION}{current}:%"
        while page := await self._store.read("encrypted_page", current=prefix, limit=BATCH):
            changed += sum(map(len, await self._store.write([self._step(row) for row in page])))
            progress(changed)
        return current, changed

    def _step(self, row: dict[str, str]) -> Step:
        place, before = SecretLocation(row["place"], row["tenant"], row["id"]), row["value"]
        text = self.decrypt(place, before) if before.startswith(_VERSION) else before
        return Step(_UPDATE[row["kind"]], {"id": place.id, "before": before, "value": self._encrypt(place, text)})

    def _encrypt(self, place: SecretLocation, text: str) -> str:
        id_, nonce = self._first(), os.urandom(_NONCE)
        sealed = nonce + self._ciphers[id_].encrypt(nonce, text.encode(), _bound(place))
        return f"{_VERSION}{id_}:{b64encode(sealed).decode()}"

    def _first(self) -> str:
        """Return the id of the key that encrypts."""
        if not self._known() and self._file is not None:
            _create(self._file)
        if not self._known():
            raise Conflict(
                "there is no encryption key, and secrets are never stored unencrypted",
                remedy=f"{_MAKE}; then set encryption_keys on every node",
                field="encryption_keys",
            )
        return next(iter(self._ciphers))

    def _known(self, wanted: str | None = None) -> Sequence[str]:
        """Return the ids of the keys; read the file again if none, or not the wanted one, is known."""
        if not self._ciphers or wanted not in {None, *self._ciphers}:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            keys = (*self._configured, *(_read(self._file) if self._file is not None else ()))
            self._ciphers = {key_id(key): AESGCM(bytes.fromhex(key)) for key in keys}
        return tuple(self._ciphers)

    def _missing(self, id_: str) -> TidingsError:
        known = ", ".join(self._known()) or "none"
        where = "encryption_keys" if self._file is None else f"encryption_keys, or to {_BESIDE}"
        return Misconfigured(
            f"the encryption key {id_} of secrets in the database is missing (configured: {known})",
            remedy=f"Add that key to {where}; without it those secrets are lost",
            field="encryption_keys",
        )


def _bound(place: SecretLocation) -> bytes:
    return orjson.dumps([*place])


def _read(file: Path) -> list[str]:
    """Return the keys of a file, one per line; none if it does not exist."""
    try:
        keys, mode = file.read_text("ascii").split(), file.stat().st_mode
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise Misconfigured(f"{_BESIDE} cannot be read ({why})", remedy="Check its owner and mode") from None
    if mode & 0o077:
        raise Misconfigured(f"{_BESIDE} can be read by others", remedy=f"Run: chmod 600 {KEY_FILE}")
    if not keys or not all(map(KEY_PATTERN.fullmatch, keys)):
        problem = f"{_BESIDE} contains no encryption keys"
        raise Misconfigured(problem, remedy="Restore it from a backup: one key of 64 hex digits per line")
    return keys


def _create(file: Path) -> None:
    """Create a key file, durable before it is used; an existing file is kept."""
    number, name = tempfile.mkstemp(prefix=f"{KEY_FILE}.", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(number, "w") as made:
            made.write(f"{secrets.token_hex(32)}\n")
            made.flush()
            os.fsync(number)
        os.link(name, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(name)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
