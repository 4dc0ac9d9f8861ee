"""The port for callbacks that are not receipts, such as inbound messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class CallbackListener(Protocol):
    """Receives verified callbacks that contain more than receipts.

    It runs before the provider is acknowledged: if it raises, the provider calls again, so the same payload
    may come twice.
    """

    async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
        """Handle a payload in the provider's format.

        `accounts` maps the provider's accounts that share the channel's signing key to their channels: one
        callback URL may serve several of them.
        """


class NoCallbackListener:
    """A listener that ignores everything."""

    async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
        """Ignore the payload."""
