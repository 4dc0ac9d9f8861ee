"""Cache of the active subscriptions with their signing secrets.

Without subscriptions, settling pays nothing for events. Secrets go from the row to the signature and are
never part of a message. Endpoints that keep failing are disabled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import orjson

from ...model.errors import TidingsError
from ...model.time import micros
from ...store.encryption import Cipher
from ...store.port import Row, Step, Store
from ...wire.webhook_signatures import SigningKey, parse_secret
from . import event_types
from .subscriptions import secret_place

PAGE = 1000
DISABLE_AFTER = timedelta(days=5)  # an endpoint that failed for this long is disabled
_MAX_PROBLEM_LENGTH = 500


@dataclass(frozen=True, slots=True)
class ActiveSubscription:
    id: str
    tenant: str
    url: str
    patterns: tuple[str, ...]
    keys: tuple[SigningKey, ...] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    failing_since: int | None = None
    stored: tuple[str, ...] = field(default=(), repr=False)  # the encrypted secrets
    problem: str | None = None  # why they cannot be decrypted; nothing is sent then


class SubscriptionCache:
    """All active subscriptions, by id."""

    def __init__(self, store: Store, cipher: Cipher) -> None:
        self._store = store
        self._cipher = cipher
        self._by_id: dict[str, ActiveSubscription] = {}
        self._tenants: Mapping[str, tuple[str, ...]] = {}

    @property
    def has_any(self) -> bool:
        return bool(self._by_id)

    def has_subscriber(self, tenant: str, types: Sequence[str]) -> bool:
        """Whether a subscription of the tenant matches one of these types."""
        patterns = self._tenants.get(tenant)
        return patterns is not None and any(event_types.matches_patterns(patterns, type_) for type_ in types)

    def of(self, tenant: str, type_: str) -> list[ActiveSubscription]:
        """The subscriptions that match an event type."""
        return [
            one
            for one in self._by_id.values()
            if one.tenant == tenant and event_types.matches_patterns(one.patterns, type_)
        ]

    def known(self, id_: str) -> ActiveSubscription | None:
        """One subscription as cached; None if it is not active."""
        return self._by_id.get(id_)

    async def find(self, id_: str) -> ActiveSubscription | None:
        """One subscription; refreshes the cache if it is unknown."""
        if id_ not in self._by_id:
            await self.refresh()
        return self._by_id.get(id_)

    async def refresh(self) -> None:
        found: dict[str, ActiveSubscription] = {}
        after = ""
        while True:
            page = await self._store.read("subscription_active", after=after, limit=PAGE)
            found |= {row["id"]: self._subscription(row) for row in page}
            if len(page) < PAGE:
                break
            after = page[-1]["id"]
        self._by_id = found
        tenants: dict[str, set[str]] = {}
        for one in found.values():
            tenants.setdefault(one.tenant, set()).update(one.patterns)
        self._tenants = {tenant: tuple(patterns) for tenant, patterns in tenants.items()}

    def _subscription(self, row: Row) -> ActiveSubscription:
        stored = tuple(secret for secret in (row["secret"], row["old_secret"]) if secret)
        patterns = tuple(orjson.loads(row["events"]))
        plain = ActiveSubscription(row["id"], row["tenant"], row["url"], patterns, (), (), row["failing_since"], stored)
        before = self._by_id.get(row["id"])
        if before and before.stored == stored and before.problem is None:
            return replace(plain, keys=before.keys, secrets=before.secrets)
        at = secret_place(row["tenant"], row["id"])
        try:
            secrets = tuple(self._cipher.decrypt(at, one) for one in stored)
            return replace(plain, keys=tuple(map(parse_secret, secrets)), secrets=secrets)
        except (TidingsError, ValueError) as error:  # disables only this subscription
            return replace(plain, problem=str(error))

    async def failed(self, subscription: ActiveSubscription, problem: str, *, now: int, gone: bool = False) -> None:
        """Record a failed event: written on the first failure and when DISABLE_AFTER has passed."""
        since = (self.known(subscription.id) or subscription).failing_since
        if since is None or gone or since <= now - micros(DISABLE_AFTER):
            step = {"id": subscription.id, "gone": gone, "patience": micros(DISABLE_AFTER)}
            await self._store.write([Step("subscription_failed", {**step, "problem": problem[:_MAX_PROBLEM_LENGTH]})])
            await self.refresh()

    async def succeeded(self, subscription: ActiveSubscription) -> None:
        """Record an accepted event; written only after a failure."""
        if subscription.failing_since is not None:
            await self._store.write([Step("subscription_well", {"id": subscription.id})])
            await self.refresh()
