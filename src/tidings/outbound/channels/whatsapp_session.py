"""WhatsApp through a linked device: a session on WAHA, Evolution API or a small gateway.

The server acts as a linked device of a phone, which may be unlinked or lose its connection at any time. While
its session is not connected the channel waits; `outbound/sessions` monitors it. No server guarantees
deduplication by id, so an uncertain message is held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject
from ...model.task import Category, OnUnknown
from .base import traits_of
from .options import ChannelKind, choice, length, matching, text, yes_or_no
from .phone_number import check_e164
from .provider_api import ProviderApi, ProviderChannel, base_url
from .provider_fields import credential, provider_fields_of
from .session import SessionCheck, SessionStatus, SessionStorage
from .whatsapp_servers.evolution import EvolutionServer
from .whatsapp_servers.gateway import GatewayServer
from .whatsapp_servers.port import (
    NumberFormat,
    SessionServer,
    SessionServerClient,
    WhatsappSessionSettings,
    by_link,
    file_of,
)
from .whatsapp_servers.waha import WahaServer

MAX_TEXT = 65_536

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.ASCII)
_CHAT = re.compile(r"[0-9]{5,32}(?:-[0-9]{5,16})?@(?:c\.us|s\.whatsapp\.net|g\.us|lid|newsletter)", re.ASCII)

_SERVERS: Mapping[SessionServer, Callable[[WhatsappSessionSettings, ProviderApi, ProviderApi], SessionServerClient]] = {
    SessionServer.WAHA: WahaServer,
    SessionServer.GATEWAY: GatewayServer,
    SessionServer.EVOLUTION: EvolutionServer,
}


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
        self.session_dir = settings.session_dir
        hide = [settings.api_key] if settings.api_key else []
        self._api = ProviderApi(settings.base_url, deadline=settings.deadline, hide=hide, now=now)
        self._quick = ProviderApi(settings.base_url, deadline=settings.status_timeout, hide=hide, now=now)
        self._server = _SERVERS[settings.server](settings, self._api, self._quick)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid unless the recipient is E.164 or a chat id, and text and file are valid."""
        if not _CHAT.fullmatch(recipient):
            check_e164(recipient)
        provider_fields_of(content, self._server.fields, "this server")
        said, file = str(content.get("text") or ""), file_of(content)
        if not said.strip() and file is None:
            raise Invalid("The message is empty", remedy="Give a text or a file", field="text")
        if len(said) > MAX_TEXT:
            remedy = f"Shorten it to {MAX_TEXT} characters"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")

    async def send(self, message: Message) -> Outcome:
        """Send once."""
        return await self._server.send(message)

    async def status(self) -> SessionCheck:
        """Check the session within `status_timeout`."""
        return await self._server.status()

    async def reconnect(self, *, restart: bool = False) -> None:
        """Start a stopped session, or restart it."""
        await self._server.reconnect(restart=restart)

    async def code(self) -> str | None:
        """The QR code that links a phone."""
        return await self._server.code()

    async def number_of(self, id_: str) -> str | None:
        """The chat id of the phone number behind a lid; None if it is not known."""
        return await self._server.number_of(id_) if isinstance(self._server, WahaServer) else None

    async def storage(self) -> SessionStorage | None:
        """Where the server keeps its sessions; None if it does not say."""
        return await self._server.storage() if isinstance(self._server, WahaServer) else None

    async def probe(self) -> Outcome:
        """Check the session."""
        found = await self.status()
        if found.link is SessionStatus.CONNECTED:
            return Done(f"the session is connected ({found.why})")
        if found.rejected:
            return Reject(Category.PERMANENT, found.why, whole_channel=True)
        return by_link(found.link, f"the session is {found.link.words}: {found.why}")

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()
        await self._quick.close()


def _folder(value: object) -> Path:
    return Path(text(value)).expanduser()


def _judge(settings: WhatsappSessionSettings) -> None:
    """Reject options that the chosen server cannot use."""
    if settings.hmac_key is not None and settings.server is not SessionServer.WAHA:
        raise ValueError("hmac_key", f"{settings.server} has no signed callbacks", "Leave it out, or use WAHA")


_field = matching(_FIELD, "must be a field name of letters, digits and _")

KIND = ChannelKind(
    WhatsappSessionSettings,
    lambda settings, now: WhatsappSessionChannel(settings, now=now),
    {
        "server": choice(SessionServer),
        "base_url": base_url,
        "api_key": credential,
        "hmac_key": credential,
        "session": matching(_SESSION, "must be a name of letters, digits, - and _"),
        "session_dir": _folder,
        "message_ids": yes_or_no,
        "check_numbers": yes_or_no,
        "phone_field": _field,
        "text_field": _field,
        "number_format": choice(NumberFormat),
        "status_timeout": length,
        "reconnect_wait": length,
        "in_order": yes_or_no,
    },
    _judge,
)
