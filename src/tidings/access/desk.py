"""The desk of access: keys, the audit trail, and the door that every face stands behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..kernel.clock import Clock
from ..observability.events import Emit, silence
from ..store.port import Store
from .audit import Audit
from .door import Door
from .failures import FailedAttempts
from .keys import KeyRing
from .limiter import Limiter


@dataclass(frozen=True, slots=True)
class AccessDesk:
    """The parts, each with its own rules."""

    keys: KeyRing
    audit: Audit
    door: Door
    limiter: Limiter
    failures: FailedAttempts


def open_access(
    store: Store, clock: Clock, configured: Sequence[str], *, is_local: bool, emit: Emit = silence
) -> AccessDesk:
    """Put the parts together; `configured` are the keys of the settings."""
    door = Door(store, clock, configured, is_local=is_local)
    audit = Audit(store)
    return AccessDesk(
        KeyRing(store, clock, door.forget, has_configured=bool(configured)),
        audit,
        door,
        Limiter(store, clock),
        FailedAttempts(clock, audit, emit),
    )
