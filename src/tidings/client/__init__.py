"""The Python client: `Client` for asyncio, `SyncClient` for programs without it.

client: Client: retries with idempotency keys, cursor pagination, ApiError.
sync: SyncClient: the same calls, blocking.
"""

from .client import ApiError, Client
from .sync import SyncClient

__all__ = ["ApiError", "Client", "SyncClient"]
