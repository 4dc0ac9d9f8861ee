"""The Python client: `Client` for asyncio, `SyncClient` for everybody else."""

from .client import ApiError, Client
from .sync import SyncClient

__all__ = ["ApiError", "Client", "SyncClient"]
