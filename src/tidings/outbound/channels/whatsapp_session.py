"""WhatsApp through a linked device: a session on WAHA, Evolution API or a small gateway.

The server acts as a linked device of a phone, which may be unlinked or lose its connection at any time. While
its session is not connected the channel waits; `outbound/sessions` monitors it. No server guarantees
deduplication by id, so an uncertain message is held.
"""

from __future__ import annotations

import re
from pathlib import Path

from .base import Channel
from .options import ChannelKind, Now, choice, length, matching, text, yes_or_no
from .provider_api import base_url, credential
from .whatsapp_servers.base import NumberFormat, SessionServer, WhatsappSessionSettings
from .whatsapp_servers.evolution import EvolutionChannel
from .whatsapp_servers.gateway import GatewayChannel
from .whatsapp_servers.waha import WahaChannel

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)
_FIELD = matching(re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.ASCII), "must be a name of letters, digits and _")


def _make(settings: WhatsappSessionSettings, now: Now) -> Channel:
    match settings.server:
        case SessionServer.WAHA:
            return WahaChannel(settings, now=now)
        case SessionServer.GATEWAY:
            return GatewayChannel(settings, now=now)
        case SessionServer.EVOLUTION:
            return EvolutionChannel(settings, now=now)


def _judge(settings: WhatsappSessionSettings) -> None:
    """Reject options that the chosen server cannot use."""
    if settings.hmac_key is not None and settings.server is not SessionServer.WAHA:
        raise ValueError("hmac_key", f"{settings.server} has no signed callbacks", "Leave it out, or use WAHA")


KIND = ChannelKind(
    WhatsappSessionSettings,
    _make,
    {
        "server": choice(SessionServer),
        "base_url": base_url,
        "api_key": credential,
        "hmac_key": credential,
        "session": matching(_SESSION, "must be a name of letters, digits, - and _"),
        "session_dir": lambda value: Path(text(value)).expanduser(),
        "message_ids": yes_or_no,
        "check_numbers": yes_or_no,
        "phone_field": _FIELD,
        "text_field": _FIELD,
        "number_format": choice(NumberFormat),
        "status_timeout": length,
        "reconnect_wait": length,
        "in_order": yes_or_no,
    },
    _judge,
)
