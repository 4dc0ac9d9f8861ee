"""Telegram's call-backs: a secret in a header, and no receipts at all; what people write is for others."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from ...wire.webhook_signatures import BadSignature
from ..channels.telegram import TelegramSettings
from .base import Callback, CallbackContent, CallbackReader, parse_object

HEADER = "x-telegram-bot-api-secret-token"


class TelegramCallbackReader:
    """One bot."""

    kind = "telegram"

    def __init__(self, bot: str, secret: str) -> None:
        self.account = bot
        self._secret = secret.encode()

    def verify(self, call: Callback) -> None:
        """The secret that was given to setWebhook, in a header."""
        if not hmac.compare_digest(call.headers.get(HEADER, "").encode(), self._secret):
            raise BadSignature(f"{HEADER} is missing or wrong")

    def read(self, call: Callback, *, now: int) -> CallbackContent:
        """One update; bots are not told what became of their messages."""
        return CallbackContent(heard=parse_object(call.body))

    def challenge(self, query: Mapping[str, str]) -> str:
        """Telegram asks nothing."""
        raise BadSignature("Telegram does not ask")

    def names(self, receipt: str) -> Sequence[str]:
        """Nothing will be told of it."""
        return ()

    def trusts(self, other: CallbackReader) -> bool:
        """Each bot has its own address."""
        return False


def reader(settings: TelegramSettings, _base: str | None) -> TelegramCallbackReader | None:
    """The reader of a bot, where call-backs are configured."""
    if settings.webhook_secret is None:
        return None
    return TelegramCallbackReader(settings.token.partition(":")[0], settings.webhook_secret)
