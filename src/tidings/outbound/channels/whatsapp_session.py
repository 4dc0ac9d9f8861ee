"""WhatsApp through a linked device: a session on WAHA, Evolution API or a small gateway.

The server acts as a linked device of a phone, which may be unlinked or lose its connection at any time. While
its session is not connected the channel waits; `outbound/sessions` monitors it. No server guarantees
deduplication by id, so an uncertain message is held.
"""

from __future__ import annotations

from .base import Channel
from .options import Now, channel_kind
from .whatsapp_servers.base import SessionServer, WhatsappSessionSettings
from .whatsapp_servers.evolution import EvolutionChannel
from .whatsapp_servers.gateway import GatewayChannel
from .whatsapp_servers.waha import WahaChannel


def _make(settings: WhatsappSessionSettings, *, now: Now) -> Channel:
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


KIND = channel_kind(WhatsappSessionSettings, _make, _judge)
