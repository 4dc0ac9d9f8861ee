"""WhatsApp through a linked device: a WAHA server, or a plain gateway with two routes.

The server acts as a linked device of a phone, which may be unlinked or lose its connection at any time. While
its session is not connected the channel waits; `outbound/sessions` monitors it. Neither server guarantees
deduplication by id, so an uncertain message is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, ClassVar
from urllib.parse import quote

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Offline, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from .base import BaseChannelSettings, traits_of
from .options import ChannelKind, choice, length, matching, yes_or_no
from .phone_number import check_e164, is_e164
from .provider_api import ProviderApi, ProviderChannel, ProviderReply, base_url, outcome_by_status
from .provider_fields import credential, provider_fields_of
from .session import SessionCheck, SessionStatus

MAX_TEXT = 65_536
MAX_CODE = 2000  # maximum characters of a scannable code

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)
_CHAT = re.compile(r"[0-9]{5,32}(?:-[0-9]{5,16})?@(?:c\.us|s\.whatsapp\.net|g\.us|lid|newsletter)", re.ASCII)

STATES: Mapping[str, SessionStatus] = {
    "WORKING": SessionStatus.CONNECTED,
    "STARTING": SessionStatus.RECONNECTING,
    "STOPPED": SessionStatus.LOGGED_OUT,
    "SCAN_QR_CODE": SessionStatus.LOGGED_OUT,
    "PASSKEY_REQUIRED": SessionStatus.LOGGED_OUT,
    "PASSKEY_CONFIRMATION_REQUIRED": SessionStatus.LOGGED_OUT,
    "FAILED": SessionStatus.LOGGED_OUT,
}
"""WAHA's session states. FAILED needs a restart by a person."""

_NEEDS_A_PERSON = re.compile(
    r"unpaired|logged.?out|logout|qr|auth.?fail|deprecated|tos.?block|proxyblock|conflict|banned|replaced",
    re.IGNORECASE,
)
_NO_SUCH_NUMBER = re.compile(
    r"not (a |on |using )?whatsapp|not registered|not exist|no lid|lid .*(missing|not found)"
    r"|invalid wid|wid error|invalid (phone|number|jid)",
    re.IGNORECASE,
)
_RECOVERS = re.compile(r"not (yet )?(ready|connected|initiali)|reconnecting", re.IGNORECASE)
_TOO_FAST = re.compile(r"rate.?(limit|overlimit)|too many|temporarily banned|slow down", re.IGNORECASE)
_NO_ANSWER = re.compile(r"time.?out|timed out|no answer|closed|disconnect|connection lost", re.IGNORECASE)

_DATA: Mapping[str, Field] = {
    "reply_to": Field("string", "id of the message to reply to", "false_15551234567@c.us_AAAA"),
    "link_preview": Field("boolean", "show link previews", False),
}


class SessionServer(StrEnum):
    """The kind of server that holds the session."""

    WAHA = "waha"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class WhatsappSessionSettings(BaseChannelSettings):
    """Settings of one session on one server."""

    server: SessionServer = SessionServer.WAHA
    base_url: str = "http://127.0.0.1:3000"
    api_key: str | None = field(default=None, repr=False)
    hmac_key: str | None = field(default=None, repr=False)
    session: str = "default"
    message_ids: bool = False
    status_timeout: timedelta = timedelta(seconds=2)
    reconnect_wait: timedelta = timedelta(minutes=5)
    in_order: bool = True
    deadline: timedelta = field(default=timedelta(seconds=30), kw_only=True)


class WhatsappSessionChannel(ProviderChannel):
    """Sends through a session; `now` returns the current instant."""

    kind: ClassVar[str] = "whatsapp_session"
    no_lookup = "the session cannot be asked about earlier messages"

    def __init__(self, settings: WhatsappSessionSettings, *, now: Callable[[], int]) -> None:
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "the server does not guarantee deduplication by id",
            max_text=MAX_TEXT,
            reconnect_wait=settings.reconnect_wait,
            in_order=settings.in_order,
        )
        self._settings = settings
        self._headers = {"x-api-key": settings.api_key} if settings.api_key else {}
        hide = [settings.api_key] if settings.api_key else []
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)
        self._quick = ProviderApi(settings.base_url, deadline=settings.status_timeout, hide=hide, now=now)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid unless the recipient is E.164 or a chat id, and the text fits."""
        if not _CHAT.fullmatch(recipient):
            check_e164(recipient)
        said = str(content.get("text") or "")
        if not said.strip():
            raise Invalid("The message is empty", remedy="Give a text; files are not supported", field="text")
        if len(said) > MAX_TEXT:
            remedy = f"Shorten it to {MAX_TEXT} characters"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")
        provider_fields_of(content, _DATA if self._settings.server is SessionServer.WAHA else {}, "this server")

    async def send(self, message: Message) -> Outcome:
        """POST once."""
        headers = {**self._headers, "idempotency-key": message.id}
        if self._settings.server is SessionServer.GATEWAY:
            body = {"phone": message.recipient, "message": message.text}
            reply = await self._api.post("/send", body, headers=headers)
            return gateway_outcome(reply, self._api) if isinstance(reply, ProviderReply) else _unanswered(reply)
        reply = await self._api.post("/api/sendText", self._waha_body(message), headers=headers)
        return waha_outcome(reply, self._api) if isinstance(reply, ProviderReply) else _unanswered(reply)

    async def status(self) -> SessionCheck:
        """Check the session within `status_timeout`; a server that does not answer counts as reconnecting."""
        waha = self._settings.server is SessionServer.WAHA
        path = f"/api/sessions/{self._session}" if waha else "/status"
        reply = await self._quick.get(path, headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return SessionCheck(SessionStatus.RECONNECTING, "the server did not answer in time")
        if reply.status in (401, 403):
            return SessionCheck(SessionStatus.LOGGED_OUT, "the server rejects the API key")
        return waha_status(reply, self._quick) if waha else gateway_status(reply, self._quick)

    async def reconnect(self) -> None:
        """Start a stopped WAHA session; no effect on a running one."""
        if self._settings.server is SessionServer.WAHA:
            await self._quick.post(f"/api/sessions/{self._session}/start", {}, headers=self._headers)

    async def code(self) -> str | None:
        """The QR code that links a phone: a WAHA route, or `qr` in the status of a gateway."""
        waha = self._settings.server is SessionServer.WAHA
        path = f"/api/{self._session}/auth/qr?format=raw" if waha else "/status"
        reply = await self._quick.get(path, headers={**self._headers, "accept": "application/json"})
        found = reply.fields.get("value" if waha else "qr") if isinstance(reply, ProviderReply) else None
        return found if isinstance(found, str) and 0 < len(found) <= MAX_CODE else None

    async def probe(self) -> Outcome:
        """Check the session."""
        found = await self.status()
        if found.link is SessionStatus.CONNECTED:
            return Done(f"the session is connected ({found.why})")
        return by_link(found.link, f"the session is {found.link.words}: {found.why}")

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()
        await self._quick.close()

    @property
    def _session(self) -> str:
        return quote(self._settings.session, safe="")

    def _waha_body(self, message: Message) -> Mapping[str, Any]:
        data = message.content.get("data") or {}
        return {
            "session": self._settings.session,
            "chatId": chat_id(message.recipient),
            "text": message.text,
            "reply_to": data.get("reply_to"),
            "linkPreview": data.get("link_preview") is not False,
            "id": message_id(message.id) if self._settings.message_ids else None,
        }


def chat_id(recipient: str) -> str:
    """The WAHA chat id of a recipient."""
    return f"{recipient[1:]}@c.us" if is_e164(recipient) else recipient


def message_id(id_: str) -> str:
    """A WhatsApp message id that is the same on every attempt."""
    return "3EB0" + sha256(id_.encode()).hexdigest()[:18].upper()


def waha_outcome(reply: ProviderReply, api: ProviderApi) -> Outcome:
    """The outcome of WAHA's response to sendText."""
    fields, status = reply.fields, reply.status
    if reply.is_success and reply.body is not None:
        return Done(receipt=_receipt(fields))
    state = fields.get("status")
    if status == 422 and isinstance(state, str) and "expected" in fields:
        return by_link(STATES.get(state, SessionStatus.LOGGED_OUT), f"the session is {api.shown(state)}")
    if status == 404:
        return Reject(Category.PERMANENT, reply.words(api.shown(fields.get("message"))), whole_channel=True)
    exception = fields.get("exception")
    said = api.shown(exception.get("message")) if isinstance(exception, dict) else ""
    if status == 500 and _NO_SUCH_NUMBER.search(said):
        return Reject(Category.PERMANENT, reply.words(said))
    return outcome_by_status(reply, reply.words(said), certain=False)


def gateway_outcome(reply: ProviderReply, api: ProviderApi) -> Outcome:
    """The outcome of a gateway's response: `success` decides, not the status."""
    success, said = reply.fields.get("success"), api.shown(reply.fields.get("error"))
    if success is True and reply.is_success:
        return Done(receipt=_receipt(reply.fields))
    if success is not False or reply.status in (401, 402, 403, 407, 420, 429):
        return outcome_by_status(reply, reply.words(said), certain=False)
    reason = reply.words(said)
    if _NO_SUCH_NUMBER.search(said):
        return Reject(Category.PERMANENT, reason)
    if _TOO_FAST.search(said):
        return Retry(Category.THROTTLING, reason, after=reply.wait, whole_channel=True)
    if _NEEDS_A_PERSON.search(said):
        return by_link(SessionStatus.LOGGED_OUT, reason)
    if _RECOVERS.search(said):
        return by_link(SessionStatus.RECONNECTING, reason)
    if _NO_ANSWER.search(said):  # the connection broke while sending
        return Unknown(reason)
    return Retry(Category.TEMPORARY, reason)


def by_link(link: SessionStatus, reason: str) -> Outcome:
    """The outcome of a disconnected session: the whole channel waits for a reconnect or a person."""
    if link is SessionStatus.LOGGED_OUT:
        return Offline(f"{reason}: a person is needed", needs_person=True)
    return Offline(reason)


def _unanswered(outcome: Outcome) -> Outcome:
    """A server that cannot be reached is offline: a message that was certainly not sent waits."""
    if isinstance(outcome, Retry) and outcome.category is Category.TEMPORARY:
        return Offline(outcome.reason)
    return outcome


def waha_status(reply: ProviderReply, api: ProviderApi) -> SessionCheck:
    """The status of a WAHA session."""
    state = reply.fields.get("status")
    if reply.status == 404:
        return SessionCheck(SessionStatus.LOGGED_OUT, "the session does not exist")
    if not reply.is_success or not isinstance(state, str):
        return SessionCheck(SessionStatus.RECONNECTING, reply.words())
    return SessionCheck(STATES.get(state, SessionStatus.LOGGED_OUT), api.shown(state))


def gateway_status(reply: ProviderReply, api: ProviderApi) -> SessionCheck:
    """The status of a gateway: {isReady, connectionState}."""
    fields = reply.fields
    state = api.shown(fields.get("connectionState")) or "no state"
    if not reply.is_success or "isReady" not in fields:
        return SessionCheck(SessionStatus.RECONNECTING, reply.words())
    if fields["isReady"] is True:
        return SessionCheck(SessionStatus.CONNECTED, state)
    return SessionCheck(
        SessionStatus.LOGGED_OUT if _NEEDS_A_PERSON.search(state) else SessionStatus.RECONNECTING, state
    )


def _receipt(fields: Mapping[str, Any]) -> str | None:
    """The provider's message id; engines put it in different places."""
    inner = fields.get("_data")
    places = (fields, inner if isinstance(inner, dict) else {})
    for place in places:
        for name in ("id", "messageId", "key"):
            found = place.get(name)
            if isinstance(found, dict):
                found = found.get("_serialized") or found.get("id")
            if isinstance(found, str) and found:
                return found[:200]
    return None


def _judge(settings: WhatsappSessionSettings) -> None:
    """Reject hmac_key for a gateway, which has no callbacks."""
    if settings.hmac_key is not None and settings.server is SessionServer.GATEWAY:
        raise ValueError("hmac_key", "a gateway has no callbacks", "Leave it out, or use WAHA")


KIND = ChannelKind(
    WhatsappSessionSettings,
    lambda settings, now: WhatsappSessionChannel(settings, now=now),
    {
        "server": choice(SessionServer),
        "base_url": base_url,
        "api_key": credential,
        "hmac_key": credential,
        "session": matching(_SESSION, "must be a name of letters, digits, - and _"),
        "message_ids": yes_or_no,
        "status_timeout": length,
        "reconnect_wait": length,
        "in_order": yes_or_no,
    },
    _judge,
)
