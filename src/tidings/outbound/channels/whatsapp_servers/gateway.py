"""A small service in front of a session: GET /status and POST /send, as many wrap whatsapp-web.js.

Their field names differ, so the usual ones are read. `success` decides where it is given, not the status.
"""

from __future__ import annotations

import re

from ....model.message import Message
from ....model.outcome import Done, Outcome, Reject, Retry, Unknown
from ....model.task import Category
from ..phone_number import is_e164
from ..provider_api import ProviderApi, ProviderReply, outcome_by_status
from ..session import SessionCheck, SessionStatus
from . import base
from .base import NumberFormat, WhatsappSessionChannel, down

_FLAGS = ("isReady", "ready", "isConnected", "connected")
_STATES = ("connectionState", "state", "status")
_SUCCESS = ("success", "ok", "sent")
_READY = frozenset({"connected", "ready", "open"})
_NEEDS_A_PERSON = re.compile(
    r"unpaired|logged.?out|logout|qr|auth.?fail|deprecated|tos.?block|proxyblock|conflict|banned|replaced",
    re.IGNORECASE,
)
_DOWN = re.compile(r"disconnect|clos|stop|destroy|fail|error|unlaunched", re.IGNORECASE)
_RECOVERS = re.compile(r"not (yet )?(ready|connected|initiali)|reconnecting", re.IGNORECASE)
_TOO_FAST = re.compile(r"rate.?(limit|overlimit)|too many|temporarily banned|slow down", re.IGNORECASE)
_NO_ANSWER = re.compile(r"time.?out|timed out|no answer|closed|disconnect|connection lost", re.IGNORECASE)


class GatewayChannel(WhatsappSessionChannel):
    """A service with two routes; it reconnects by itself."""

    async def send(self, message: Message) -> Outcome:
        """POST once."""
        body = {self._settings.phone_field: self._number(message.recipient), self._settings.text_field: message.text}
        reply = await self._api.post("/send", body, headers={**self._headers, "idempotency-key": message.id})
        return gateway_outcome(reply, self._api) if isinstance(reply, ProviderReply) else base.unanswered(reply)

    async def status(self) -> SessionCheck:
        """Read the status."""
        reply = await self._read_status("/status")
        return reply if isinstance(reply, SessionCheck) else gateway_status(reply, self._quick)

    async def code(self) -> str | None:
        """Read `qr` in the status."""
        return await self._read_code("/status", "qr")

    def _number(self, recipient: str) -> str:
        if not is_e164(recipient) or self._settings.number_format is NumberFormat.E164:
            return recipient
        digits = recipient[1:]
        return digits if self._settings.number_format is NumberFormat.DIGITS else f"{digits}@c.us"


def gateway_outcome(reply: ProviderReply, api: ProviderApi) -> Outcome:
    """The outcome of a service's response."""
    fields = reply.fields
    success = next((fields[name] for name in _SUCCESS if isinstance(fields.get(name), bool)), None)
    receipt, said = base.receipt_of(fields), base.said_in(reply, api, "error", "message")
    if reply.is_success and (success is True or (success is None and receipt is not None)):
        return Done(receipt=receipt)
    reason = reply.words(said)
    by_status = outcome_by_status(reply, reason, certain=False)
    if success is True or reply.status in (401, 402, 403, 407, 420, 429) or (success is None and not said):
        return by_status
    if base.NO_SUCH_NUMBER.search(said):
        return Reject(Category.PERMANENT, reason)
    if _TOO_FAST.search(said):
        return Retry(Category.THROTTLING, reason, after=reply.wait, whole_channel=True)
    if _NEEDS_A_PERSON.search(said):
        return base.by_link(SessionStatus.LOGGED_OUT, reason)
    if _RECOVERS.search(said):
        return base.by_link(SessionStatus.RECONNECTING, reason)
    if _NO_ANSWER.search(said):  # the connection broke while sending
        return Unknown(reason)
    return Retry(Category.TEMPORARY, reason) if success is False else by_status


def gateway_status(reply: ProviderReply, api: ProviderApi) -> SessionCheck:
    """The status of a service: a flag, a word, or both, perhaps below `data`."""
    fields = {**reply.fields, **reply.inner("data")}
    flag = next((fields[name] for name in _FLAGS if isinstance(fields.get(name), bool)), None)
    state = next((said for name in _STATES if (said := api.shown(fields.get(name)))), "")
    if flag is None and not state:
        return down(reply.words())
    if flag is True or (flag is None and state.lower() in _READY):
        return SessionCheck(SessionStatus.CONNECTED, state or "ready")
    if _NEEDS_A_PERSON.search(state) or isinstance(fields.get("qr"), str):
        return SessionCheck(SessionStatus.LOGGED_OUT, state or "a QR code must be scanned")
    return SessionCheck(SessionStatus.RECONNECTING, state or "not ready", is_down=_DOWN.search(state) is not None)
