"""The desk of access: keys, the audit trail, and the door that every face stands behind."""

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
    """The parts, each with its own rules."""

    keys: ApiKeys
    audit: AuditLog
    door: Authenticator
    limiter: ApiKeyRateLimiter
    failures: FailedLogins


def open_access(
    store: Store, clock: Clock, configured: Sequence[str], *, is_local: bool, emit: Emit = discard_event
) -> AccessService:
    """Put the parts together; `configured` are the keys of the settings."""
    door = Authenticator(store, clock, configured, is_local=is_local)
    audit = AuditLog(store)
    return AccessService(
        ApiKeys(store, clock, door.forget, has_configured=bool(configured)),
        audit,
        door,
        ApiKeyRateLimiter(store, clock),
        FailedLogins(clock, audit, emit),
    )
