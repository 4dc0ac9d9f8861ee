"""AccessService: wires API keys, audit log, authentication and rate limits together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..kernel.clock import Clock
from ..observability.events import Emit, discard_event
from ..store.port import Store
from .api_keys import ApiKeys
from .audit import AuditLog
from .authentication import Authenticator
from .failed_logins import FailedLogins
from .rate_limits import ApiKeyRateLimiter


@dataclass(frozen=True, slots=True)
class AccessService:
    """The parts of access control."""

    keys: ApiKeys
    audit: AuditLog
    authenticator: Authenticator
    rate_limiter: ApiKeyRateLimiter
    failed_logins: FailedLogins


def open_access(
    store: Store, clock: Clock, configured: Sequence[str], *, is_local: bool, emit: Emit = discard_event
) -> AccessService:
    """Build the service; `configured` are the keys of the settings."""
    authenticator = Authenticator(store, clock, configured, is_local=is_local)
    audit = AuditLog(store)
    return AccessService(
        ApiKeys(store, clock, authenticator.forget, has_configured=bool(configured)),
        audit,
        authenticator,
        ApiKeyRateLimiter(store, clock),
        FailedLogins(clock, audit, emit),
    )
