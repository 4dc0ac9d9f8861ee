"""Which kinds of sources there are, and what each can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..domain import IncomingMessage
from . import groupme, telegram, waha, whatsapp_cloud
from .groupme import GroupMeSource
from .port import PolledSource, WebhookRequest
from .settings import GROUPME, TELEGRAM, WAHA, WEBHOOK, WHATSAPP_CLOUD, SourceSettings
from .telegram import TelegramSource
from .webhook import WebhookSource

Now = Callable[[], int]


class PushSource(Protocol):
    """A source that is called at /inbound/NAME."""

    def called(self, call: WebhookRequest) -> list[IncomingMessage]:
        """What was said; raises NotGenuine, or Invalid."""


READERS: Mapping[str, Callable[[SourceSettings, Mapping[str, Any]], list[IncomingMessage]]] = {
    GROUPME: groupme.incoming,
    TELEGRAM: telegram.incoming,
    WHATSAPP_CLOUD: whatsapp_cloud.incoming,
    WAHA: waha.incoming,
}
"""How a call-back that somebody else has verified is read."""

_POLLED: Mapping[str, Callable[..., PolledSource]] = {GROUPME: GroupMeSource, TELEGRAM: TelegramSource}
_CALLED: Mapping[str, Callable[..., PushSource]] = {
    GROUPME: GroupMeSource,
    TELEGRAM: TelegramSource,
    WEBHOOK: WebhookSource,
}


def polled(settings: SourceSettings, *, now: Now) -> PolledSource | None:
    """A reader of this source, if it is read."""
    return _POLLED[settings.kind](settings, now=now) if settings.is_polled else None


def called(settings: SourceSettings, *, now: Now) -> PushSource | None:
    """What answers its calls, if it is called at an address of its own."""
    make = _CALLED.get(settings.kind)
    return make(settings, now=now) if make is not None and settings.secrets else None
