"""Signing secrets per endpoint: what one receiver gets never verifies at another.

Each secret of a channel is a root from which the secret of an endpoint is derived by HMAC, for one tenant and
one URL. The root itself signs nothing and is shown to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

from ...model.errors import Conflict, Invalid, NotFound
from ...wire.ssrf_guard import ForbiddenUrl
from ...wire.webhook_signatures import SigningKey, derived_secret, parse_secret
from .base import Channel

_MOST = 10_000  # endpoints whose keys are remembered


class EndpointKeys(NamedTuple):
    """What signs for one endpoint, newest first: the secrets as its receiver knows them, and as keys."""

    secrets: tuple[str, ...]
    keys: tuple[SigningKey, ...]


class EndpointSigner:
    """Derives the secrets of endpoints from those of a channel."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self.of = lru_cache(_MOST)(self._derive)

    def _derive(self, tenant: str, url: str) -> EndpointKeys:
        secrets = tuple(derived_secret(parse_secret(root), tenant, url) for root in self._roots)
        return EndpointKeys(secrets, tuple(map(parse_secret, secrets)))


@runtime_checkable
class HasSigningSecrets(Protocol):
    """What a channel may fill besides: its receivers verify what they get."""

    def endpoint_secrets(self, tenant: str, recipient: str) -> tuple[str, ...]:
        """The secrets that a receiver verifies with, newest first; raises Forbidden for one that has none."""


def endpoint_secrets(
    channels: Mapping[str, Channel], name: str, to: str, *, tenant: str
) -> Mapping[str, object]:
    """The signing secrets of one endpoint, for its receiver."""
    if name not in channels:
        known = ", ".join(sorted(channels)) or "none"
        raise NotFound(f"there is no channel {name!r}", field="name", remedy=f"configured channels: {known}")
    channel = channels[name]
    if not isinstance(channel, HasSigningSecrets):
        remedy = "use a channel of kind webhook, or events"
        raise Conflict(f"the channel {name!r} signs nothing", field="name", remedy=remedy)
    try:
        found = channel.endpoint_secrets(tenant, to)
    except ForbiddenUrl as error:
        remedy = "use the URL to which messages are sent, or 'default'"
        raise Invalid(f"this endpoint cannot be called: {error}", field="to", remedy=remedy) from None
    if not found:
        remedy = "give it secrets in the configuration"
        raise Conflict(f"the channel {name!r} has no secrets: it signs nothing", field="name", remedy=remedy)
    return {"channel": name, "tenant": tenant, "to": to, "secrets": list(found)}
