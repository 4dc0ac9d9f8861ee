"""Wiring of the store that the settings select."""

from __future__ import annotations

from typing import cast

from ..config import Settings
from ..kernel.clock import Clock
from ..model.errors import Misconfigured
from ..observability.events import Emit
from ..store.encryption import KEY_FILE, Cipher
from ..store.port import Store
from ..store.sqlite import SqliteStore


def open_store(settings: Settings, clock: Clock) -> Store:
    """Return the store of the database URL."""
    path = settings.database_path
    if path is not None:
        return SqliteStore(path, now=clock.wall)
    try:
        from ..store.postgres import PostgresStore
    except ImportError as error:
        raise Misconfigured(
            "the PostgreSQL driver is not installed", remedy="pip install 'tidings[postgres]'"
        ) from error
    return PostgresStore(settings.database)


def build_cipher(settings: Settings, store: Store) -> Cipher:
    """Build the cipher for secrets in the store. With SQLite a key is created when it is first needed."""
    file = store.path.parent / KEY_FILE if isinstance(store, SqliteStore) else None
    return Cipher(store, settings.encryption_keys, file)


def build_read_store(settings: Settings, store: Store, emit: Emit) -> Store:
    """Return the store for lists, pages and exports."""
    if settings.replica is None:
        return store
    from ..store.postgres import PostgresStore
    from ..store.read_replica import ReplicaStore

    return cast(Store, ReplicaStore(store, PostgresStore(settings.replica, connections=4), emit=emit))
