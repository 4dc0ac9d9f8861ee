"""Which kinds of sources there are, and what each can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..words import Incoming
from . import groupme, telegram, waha, whatsapp_cloud
from .groupme import GroupMe
from .port import Call, Polled
from .settings import GROUPME, TELEGRAM, WAHA, WEBHOOK, WHATSAPP_CLOUD, SourceSettings
from .telegram import Telegram
from .webhook import Webhook

Now = Callable[[], int]


class Called(Protocol):
    """A source that is called at /inbound/NAME."""

    def called(self, call: Call) -> list[Incoming]:
        """What was said; raises NotGenuine, or Invalid."""


READERS: Mapping[str, Callable[[SourceSettings, Mapping[str, Any]], list[Incoming]]] = {
    GROUPME: groupme.incoming,
    TELEGRAM: telegram.incoming,
    WHATSAPP_CLOUD: whatsapp_cloud.incoming,
    WAHA: waha.incoming,
}
"""How a call-back that somebody else has verified is read."""

_POLLED: Mapping[str, Callable[..., Polled]] = {GROUPME: GroupMe, TELEGRAM: Telegram}
_CALLED: Mapping[str, Callable[..., Called]] = {GROUPME: GroupMe, TELEGRAM: Telegram, WEBHOOK: Webhook}


def polled(settings: SourceSettings, *, now: Now) -> Polled | None:
    """A reader of this source, if it is read."""
    return _POLLED[settings.kind](settings, now=now) if settings.is_polled else None


def called(settings: SourceSettings, *, now: Now) -> Called | None:
    """What answers its calls, if it is called at an address of its own."""
    make = _CALLED.get(settings.kind)
    return make(settings, now=now) if make is not None and settings.secrets else None
