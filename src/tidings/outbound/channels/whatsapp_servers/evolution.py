"""Evolution API (v2): an instance is `open`, `connecting` or `close`.

While a phone must be linked an instance is `connecting` and offers a code; a closed one is connected again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....inputs.fields import Field
from ....model.message import Message
from ....model.outcome import Done, Offline, Outcome, Reject
from ....model.task import Category
from ..phone_number import is_e164
from ..provider_api import ProviderApi, ProviderReply, outcome_by_status
from ..session import SessionCheck, SessionStatus
from . import base
from .base import WhatsappSessionChannel


class EvolutionChannel(WhatsappSessionChannel):
    """One instance of an Evolution API server."""

    fields: Mapping[str, Field] = {"link_preview": base.LINK_PREVIEW, **base.FILE_FIELDS}
    key_header = "apikey"

    async def send(self, message: Message) -> Outcome:
        """POST once."""
        path, body = evolution_request(message)
        headers = {**self._headers, "idempotency-key": message.id}
        reply = await self._api.post(f"/message/{path}/{self._session}", body, headers=headers)
        return evolution_outcome(reply, self._api) if isinstance(reply, ProviderReply) else base.unanswered(reply)

    async def status(self) -> SessionCheck:
        """Read the state; while it connects, a code means that a phone must be linked."""
        reply = await self._read_status(f"/instance/connectionState/{self._session}")
        if isinstance(reply, SessionCheck):
            return reply
        state = self._quick.shown(reply.inner("instance").get("state"))
        if state == "open":
            return SessionCheck(SessionStatus.CONNECTED, state)
        if state == "connecting" and await self.code() is not None:
            return SessionCheck(SessionStatus.LOGGED_OUT, "a QR code must be scanned")
        return SessionCheck(SessionStatus.RECONNECTING, state or reply.words(), is_down=state != "connecting")

    async def reconnect(self, *, restart: bool = False) -> None:
        """Connect a closed instance, or restart it."""
        if restart:
            await self._quick.post(f"/instance/restart/{self._session}", {}, headers=self._headers)
        else:
            await self._quick.get(f"/instance/connect/{self._session}", headers=self._headers)

    async def code(self) -> str | None:
        """Read the code of an instance that connects."""
        return await self._read_code(f"/instance/connect/{self._session}", "code")


def evolution_request(message: Message) -> tuple[str, Mapping[str, Any]]:
    """The path and body that send a message."""
    to, file = message.recipient, base.file_of(message.content)
    body: dict[str, Any] = {"number": to[1:] if is_e164(to) else to}
    if file is None:
        preview = (message.content.get("data") or {}).get("link_preview") is not False
        return "sendText", {**body, "text": message.text, "linkPreview": preview}
    kind = "image" if file.is_image else "document"
    body |= {"mediatype": kind, "mimetype": file.mimetype, "media": file.url or file.data}
    body |= {"caption": message.text} if message.text else {}
    return "sendMedia", {**body, "fileName": file.filename or kind}


def evolution_outcome(reply: ProviderReply, api: ProviderApi) -> Outcome:
    """The outcome of Evolution's response to a message."""
    if reply.is_success and reply.body is not None:
        return Done(receipt=base.receipt_of(reply.fields))
    listed = reply.inner("response").get("message")
    parts = listed if isinstance(listed, list) else [listed]
    if any(isinstance(part, dict) and part.get("exists") is False for part in parts):
        return Reject(Category.PERMANENT, reply.words("the number is not registered on WhatsApp"))
    reason = reply.words(*(api.shown(part) for part in parts))
    if reply.status == 404 or "connection closed" in reason.lower():  # refused before it was sent
        return Offline(reason)
    return outcome_by_status(reply, reason, certain=False)
