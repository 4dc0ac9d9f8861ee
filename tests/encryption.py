"""An encryption key for tests, and a cipher under it."""

from __future__ import annotations

from tidings.store.encryption import Cipher
from tidings.store.port import Store

KEY = "7e57" * 16


def cipher(store: Store, *keys: str) -> Cipher:
    """As an engine with these encryption keys has it."""
    return Cipher(store, keys or (KEY,))
