"""The desk of access: keys, the audit trail, and the door that every face stands behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..kernel.clock import Clock
from ..store.port import Store
from .audit import Audit
from .door import Door
from .keys import KeyRing
from .limiter import Limiter, WrongKeys


@dataclass(frozen=True, slots=True)
class AccessDesk:
    """The parts, each with its own rules."""

    keys: KeyRing
    audit: Audit
    door: Door
    limiter: Limiter
    wrong_keys: WrongKeys


def open_access(store: Store, clock: Clock, configured: Sequence[str], *, is_local: bool) -> AccessDesk:
    """Put the parts together; `configured` are the keys of the settings."""
    door = Door(store, clock, configured, is_local=is_local)
    return AccessDesk(
        KeyRing(store, clock, door.forget), Audit(store), door, Limiter(store, clock), WrongKeys(clock)
    )
