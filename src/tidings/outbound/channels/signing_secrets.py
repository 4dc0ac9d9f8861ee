"""Webhook signing secrets, derived for each endpoint: one receiver's webhook never verifies at another.

Each secret of a channel is a root key; the secret of an endpoint is derived from it by HMAC for one tenant
and URL. The root signs nothing and is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

from ...model.errors import Conflict, Invalid
from ...wire.ssrf_guard import ForbiddenUrl
from ...wire.webhook_signatures import SigningKey, derived_secret, parse_secret
from .base import Channel, unknown_channel

_MAX_CACHED = 10_000  # endpoints


class EndpointKeys(NamedTuple):
    """The signing secrets of one endpoint, newest first, as text and as keys."""

    secrets: tuple[str, ...]
    keys: tuple[SigningKey, ...]


class EndpointSigner:
    """Derives endpoint secrets from a channel's secrets."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self.of = lru_cache(_MAX_CACHED)(self._derive)

    def _derive(self, tenant: str, url: str) -> EndpointKeys:
        secrets = tuple(derived_secret(parse_secret(root), tenant, url) for root in self._roots)
        return EndpointKeys(secrets, tuple(map(parse_secret, secrets)))


@runtime_checkable
class HasSigningSecrets(Protocol):
    """Optional protocol of channels that sign their messages."""

    def endpoint_secrets(self, tenant: str, recipient: str) -> tuple[str, ...]:
        """The secrets a receiver verifies with, newest first; raises ForbiddenUrl."""


def endpoint_secrets(channels: Mapping[str, Channel], name: str, to: str, *, tenant: str) -> Mapping[str, object]:
    """The signing secrets of one endpoint, for its owner."""
    if name not in channels:
        raise unknown_channel(name, channels)
    channel = channels[name]
    if not isinstance(channel, HasSigningSecrets):
        remedy = "use a channel of kind webhook, or events"
        raise Conflict(f"the channel {name!r} does not sign messages", field="name", remedy=remedy)
    try:
        found = channel.endpoint_secrets(tenant, to)
    except ForbiddenUrl as error:
        remedy = "use the URL that messages are sent to, or 'default'"
        raise Invalid(f"the endpoint is not allowed: {error}", field="to", remedy=remedy) from None
    if not found:
        remedy = "add secrets to its configuration"
        raise Conflict(f"the channel {name!r} has no signing secrets", field="name", remedy=remedy)
    return {"channel": name, "tenant": tenant, "to": to, "secrets": list(found)}
