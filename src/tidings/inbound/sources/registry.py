"""The kinds of sources and what each supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..domain import IncomingMessage
from . import groupme, telegram, twilio, waha, whatsapp_cloud
from .groupme import GroupMeSource
from .port import PolledSource, WebhookRequest
from .settings import GROUPME, TELEGRAM, TWILIO, WAHA, WEBHOOK, WHATSAPP_CLOUD, SourceSettings
from .telegram import TelegramSource
from .webhook import WebhookSource

Now = Callable[[], int]


class PushSource(Protocol):
    """A source with a webhook at /inbound/NAME."""

    def called(self, call: WebhookRequest) -> list[IncomingMessage]:
        """Verify and parse a request; raises UnverifiedWebhook or Invalid."""


READERS: Mapping[str, Callable[[SourceSettings, Mapping[str, Any]], list[IncomingMessage]]] = {
    GROUPME: groupme.incoming,
    TELEGRAM: telegram.incoming,
    WHATSAPP_CLOUD: whatsapp_cloud.incoming,
    WAHA: waha.incoming,
    TWILIO: twilio.incoming,
}
"""Parsers of callbacks that a channel has already verified."""

_POLLED: Mapping[str, Callable[..., PolledSource]] = {GROUPME: GroupMeSource, TELEGRAM: TelegramSource}
_CALLED: Mapping[str, Callable[..., PushSource]] = {
    GROUPME: GroupMeSource,
    TELEGRAM: TelegramSource,
    WEBHOOK: WebhookSource,
}


def polled(settings: SourceSettings, *, now: Now) -> PolledSource | None:
    """Build the poller's side of a source, if it is polled."""
    return _POLLED[settings.kind](settings, now=now) if settings.is_polled else None


def called(settings: SourceSettings, *, now: Now) -> PushSource | None:
    """Build the webhook side of a source, if it has secrets."""
    make = _CALLED.get(settings.kind)
    return make(settings, now=now) if make is not None and settings.secrets else None
