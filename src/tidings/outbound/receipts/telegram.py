"""Telegram callbacks: a secret header, no receipts; updates go to the listener."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from ...wire.webhook_signatures import BadSignature
from ..channels.telegram import TelegramSettings
from .base import Callback, CallbackContent, CallbackReader, parse_object

HEADER = "x-telegram-bot-api-secret-token"


class TelegramCallbackReader(CallbackReader):
    """Reads the updates of one bot."""

    kind, provider = "telegram", "Telegram"

    def __init__(self, bot: str, secret: str) -> None:
        self.account = bot
        self._secret = secret.encode()

    def verify(self, call: Callback) -> None:
        """Check the secret header set with setWebhook."""
        if not hmac.compare_digest(call.headers.get(HEADER, "").encode(), self._secret):
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """Pass on one update; bots get no delivery status."""
        return CallbackContent(heard=parse_object(call.body))

    def names(self, receipt: str) -> Sequence[str]:
        """Telegram sends no receipts."""
        return ()


def reader(settings: TelegramSettings, _base: str | None) -> TelegramCallbackReader | None:
    """The callback reader of a channel; None without webhook_secret."""
    if settings.webhook_secret is None:
        return None
    return TelegramCallbackReader(settings.token.partition(":")[0], settings.webhook_secret)
