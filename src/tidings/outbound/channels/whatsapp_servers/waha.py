"""WAHA. A session that does not run answers 404, one that runs and does not work 422 with its state.

Numbers of countries where WhatsApp moved a digit are looked up before the first message: the chat id built
from the number would be accepted and never arrive. Three HTTP 500 in a row mean that the session only seems to
work, so it is restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from ....inputs.fields import Field
from ....model.message import Message
from ....model.outcome import Done, Offline, Outcome, Reject, Unknown
from ....model.task import Category
from ..phone_number import is_e164
from ..provider_api import ProviderApi, ProviderReply, outcome_by_status
from ..session import SessionCheck, SessionStatus, SessionStorage
from . import base
from .base import WhatsappSessionChannel, WhatsappSessionSettings, down

STATES: Mapping[str, SessionCheck] = {
    "WORKING": SessionCheck(SessionStatus.CONNECTED, "WORKING"),
    "STARTING": SessionCheck(SessionStatus.RECONNECTING, "STARTING"),
    "STOPPED": down("STOPPED"),
    "FAILED": down("FAILED")._replace(restart=True),
    "SCAN_QR_CODE": SessionCheck(SessionStatus.LOGGED_OUT, "SCAN_QR_CODE"),
    "PASSKEY_REQUIRED": SessionCheck(SessionStatus.LOGGED_OUT, "PASSKEY_REQUIRED"),
    "PASSKEY_CONFIRMATION_REQUIRED": SessionCheck(SessionStatus.LOGGED_OUT, "PASSKEY_CONFIRMATION_REQUIRED"),
}
MOVED_DIGITS = ("+52", "+54", "+55")  # Mexico, Argentina, Brazil
MAX_ERRORS = 3  # HTTP 500 in a row until the session is restarted
CACHED = 10_000

_DATABASES = ("WHATSAPP_SESSIONS_POSTGRESQL_URL", "WHATSAPP_SESSIONS_MONGO_URL")


class WahaChannel(WhatsappSessionChannel):
    """One session of a WAHA server."""

    fields: Mapping[str, Field] = {"reply_to": base.REPLY_TO, "link_preview": base.LINK_PREVIEW, **base.FILE_FIELDS}

    def __init__(self, settings: WhatsappSessionSettings, *, now: Callable[[], int]) -> None:
        super().__init__(settings, now=now)
        self._chats: dict[str, str] = {}  # by phone number
        self._numbers: dict[str, str] = {}  # by lid
        self._errors = 0

    async def send(self, message: Message) -> Outcome:
        """Look up the chat if needed, and POST once."""
        since = self._api.begin()
        chat = await self._chat(message.recipient)
        if not isinstance(chat, str):
            return chat
        path, body = request_of(message, chat, self._settings)
        headers = {**self._headers, "idempotency-key": message.id}
        reply = await self._api.post(path, body, headers=headers, since=since)
        if not isinstance(reply, ProviderReply):
            return base.unanswered(reply)
        return self._counted(reply, waha_outcome(reply, self._api))

    async def status(self) -> SessionCheck:
        """Read the session's state."""
        reply = await self._read_status(f"/api/sessions/{self._session}")
        if isinstance(reply, SessionCheck):
            return reply
        return check_of(self._quick.shown(reply.fields.get("status")) or reply.words())

    async def reconnect(self, *, restart: bool = False) -> None:
        """Start the session, which has no effect on a running one; or restart it."""
        action = "restart" if restart else "start"
        await self._quick.post(f"/api/sessions/{self._session}/{action}", {}, headers=self._headers)

    async def code(self) -> str | None:
        """Read the QR code as text."""
        return await self._read_code(f"/api/{self._session}/auth/qr?format=raw", "value")

    async def number_of(self, id_: str) -> str | None:
        """The chat id of the phone number behind a lid; None if it is hidden or the server does not answer."""
        if id_ in self._numbers:
            return self._numbers[id_]
        reply = await self._quick.get(f"/api/{self._session}/lids/{quote(id_, safe='@')}", headers=self._headers)
        found = reply.fields.get("pn") if isinstance(reply, ProviderReply) and reply.is_success else None
        return _cache(self._numbers, id_, found) if isinstance(found, str) and found else None

    async def storage(self) -> SessionStorage | None:
        """Where the server keeps its sessions, by its environment; None if it does not say."""
        reply = await self._quick.get("/api/server/environment", headers=self._headers)
        if not isinstance(reply, ProviderReply) or not reply.is_success or reply.body is None:
            return None
        fields = reply.fields
        database = next((name for name in _DATABASES if fields.get(name)), None)
        place = database or self._quick.shown(fields.get("WAHA_LOCAL_STORE_BASE_DIR")) or "/app/.sessions"
        return SessionStorage(place, database is not None)

    async def _chat(self, recipient: str) -> str | Outcome:
        """The chat id of a recipient; an outcome if WhatsApp must be asked and does not know."""
        if not is_e164(recipient):
            return recipient
        if not self._settings.check_numbers and not recipient.startswith(MOVED_DIGITS):
            return f"{recipient[1:]}@c.us"
        if recipient in self._chats:
            return self._chats[recipient]
        query = f"phone={recipient[1:]}&session={self._session}"
        reply = await self._api.get(f"/api/contacts/check-exists?{query}", headers=self._headers)
        if not isinstance(reply, ProviderReply):
            return base.unanswered(reply)
        found, chat = reply.fields.get("numberExists"), reply.fields.get("chatId")
        if reply.is_success and found is True and isinstance(chat, str):
            return _cache(self._chats, recipient, chat)
        if reply.is_success and found is False:
            return Reject(Category.PERMANENT, "the number is not registered on WhatsApp")
        outcome = waha_outcome(reply, self._api)  # nothing was sent yet
        return Offline(reply.words()) if isinstance(outcome, Unknown | Done) else outcome

    def _counted(self, reply: ProviderReply, outcome: Outcome) -> Outcome:
        """Count errors in a row; the last one disconnects the session for a restart."""
        if reply.status != 500 or not isinstance(outcome, Unknown):
            self._errors = 0
            return outcome
        self._errors = (self._errors + 1) % MAX_ERRORS
        return outcome if self._errors else Unknown(outcome.evidence, session_failed=True)


def request_of(message: Message, chat: str, settings: WhatsappSessionSettings) -> tuple[str, Mapping[str, Any]]:
    """The path and body that send a message; fields without a value are left out."""
    data, file = message.content.get("data") or {}, base.file_of(message.content)
    body: dict[str, Any] = {"session": settings.session, "chatId": chat}
    if file is None:
        body |= {"text": message.text, "linkPreview": data.get("link_preview") is not False}
        body |= {"id": message_id(message.id)} if settings.message_ids else {}
    else:
        parts = {"mimetype": file.mimetype, "filename": file.filename, "url": file.url, "data": file.data}
        body |= {"file": {name: part for name, part in parts.items() if part is not None}}
        body |= {"caption": message.text} if message.text else {}
    if data.get("reply_to"):
        body["reply_to"] = data["reply_to"]
    return ("/api/sendText" if file is None else "/api/sendImage" if file.is_image else "/api/sendFile"), body


def message_id(id_: str) -> str:
    """A WhatsApp message id that is the same on every attempt."""
    return "3EB0" + sha256(id_.encode()).hexdigest()[:18].upper()


def waha_outcome(reply: ProviderReply, api: ProviderApi) -> Outcome:
    """The outcome of WAHA's response to a message."""
    fields, status = reply.fields, reply.status
    if reply.is_success and reply.body is not None:
        return Done(receipt=base.receipt_of(fields))
    state = fields.get("status")
    if status == 422 and isinstance(state, str) and "expected" in fields:
        shown = api.shown(state)
        return base.by_link(check_of(shown).link, f"the session is {shown}")
    if status == 404:
        return Offline(reply.words(base.said_in(reply, api, "message")))
    said = api.shown(reply.inner("exception").get("message"))
    if status == 500 and base.NO_SUCH_NUMBER.search(said):
        return Reject(Category.PERMANENT, reply.words(said))
    return outcome_by_status(reply, reply.words(said), certain=False)


def check_of(state: str) -> SessionCheck:
    """What a state of WAHA means; an unknown one is waited for."""
    return STATES.get(state) or down(state)


def _cache(cache: dict[str, str], name: str, value: str) -> str:
    """Keep a value; the oldest one makes room."""
    if len(cache) >= CACHED:
        del cache[next(iter(cache))]
    cache[name] = value
    return value
