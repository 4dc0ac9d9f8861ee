"""Tidings: every message, on time, once, and you can see why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import ApiError, Client, SyncClient
    from .engine import Engine

__version__ = "0.1.0"
__all__ = ["ApiError", "Client", "Engine", "SyncClient", "__version__"]


def __getattr__(name: str) -> Any:
    """The client and the engine, each loaded only by who asks for it."""
    if name == "Engine":
        from .engine import Engine

        return Engine
    if name not in ("ApiError", "Client", "SyncClient"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import client

    return getattr(client, name)
