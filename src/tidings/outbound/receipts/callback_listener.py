"""Who else listens to providers: the port for whatever a call-back says that is no receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class CallbackListener(Protocol):
    """Gets every verified call-back that is about more than our own messages.

    It is called before the provider is told that all is well, so what it raises makes the provider come
    again; the same payload may therefore come twice.
    """

    async def heard(self, channel: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Something came for a channel, in the provider's own words."""


class NoCallbackListener:
    """The listener where nobody listens."""

    async def heard(self, channel: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Nobody does."""
