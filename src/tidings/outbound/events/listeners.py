"""Listeners: who is to be told of what, as last read from the subscriptions.

A cache: the rows are the truth. What it is for: while nobody listens, settling pays nothing for events; and a
secret goes from its row to the signature without ever being part of a message.
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
from ...wire.signature import Key, parse_secret
from . import telling
from .subscriptions import place

PAGE = 1000
PATIENCE = timedelta(days=5)  # a receiver that took nothing for so long is not called any more
_LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class Listener:
    """One active subscription."""

    id: str
    tenant: str
    url: str
    patterns: tuple[str, ...]
    keys: tuple[Key, ...] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    failing_since: int | None = None
    stored: tuple[str, ...] = field(default=(), repr=False)  # the secrets as the row has them
    problem: str | None = None  # why they cannot be decrypted; then nothing is sent


class Listeners:
    """All active subscriptions, by id."""

    def __init__(self, store: Store, cipher: Cipher) -> None:
        self._store = store
        self._cipher = cipher
        self._by_id: dict[str, Listener] = {}
        self._tenants: Mapping[str, tuple[str, ...]] = {}

    @property
    def are_there(self) -> bool:
        """Whether anybody is to be told anything."""
        return bool(self._by_id)

    def are_told(self, tenant: str, types: Sequence[str]) -> bool:
        """Whether some subscription of a tenant wants one of these."""
        patterns = self._tenants.get(tenant)
        return patterns is not None and any(telling.wants(patterns, type_) for type_ in types)

    def of(self, tenant: str, type_: str) -> list[Listener]:
        """Everybody who is to be told of such an event."""
        return [
            one for one in self._by_id.values() if one.tenant == tenant and telling.wants(one.patterns, type_)
        ]

    def known(self, id_: str) -> Listener | None:
        """One subscription, as last read; None when it is not active."""
        return self._by_id.get(id_)

    async def find(self, id_: str) -> Listener | None:
        """The same, read anew where it is not known."""
        if id_ not in self._by_id:
            await self.refresh()
        return self._by_id.get(id_)

    async def refresh(self) -> None:
        """Read the rows anew."""
        found: dict[str, Listener] = {}
        after = ""
        while True:
            page = await self._store.read("subscription_active", after=after, limit=PAGE)
            found |= {row["id"]: self._listener(row) for row in page}
            if len(page) < PAGE:
                break
            after = page[-1]["id"]
        self._by_id = found
        tenants: dict[str, set[str]] = {}
        for one in found.values():
            tenants.setdefault(one.tenant, set()).update(one.patterns)
        self._tenants = {tenant: tuple(patterns) for tenant, patterns in tenants.items()}

    def _listener(self, row: Row) -> Listener:
        stored = tuple(secret for secret in (row["secret"], row["old_secret"]) if secret)
        patterns = tuple(orjson.loads(row["events"]))
        plain = Listener(row["id"], row["tenant"], row["url"], patterns, (), (), row["failing_since"], stored)
        before = self._by_id.get(row["id"])
        if before and before.stored == stored and before.problem is None:
            return replace(plain, keys=before.keys, secrets=before.secrets)
        at = place(row["tenant"], row["id"])
        try:
            secrets = tuple(self._cipher.decrypt(at, one) for one in stored)
            return replace(plain, keys=tuple(map(parse_secret, secrets)), secrets=secrets)
        except (TidingsError, ValueError) as error:  # of this subscription only: the others are told
            return replace(plain, problem=str(error))

    async def failed(self, listener: Listener, problem: str, *, now: int, gone: bool = False) -> None:
        """An event was not taken. Written when it is news: at first, and when patience ends."""
        since = (self.known(listener.id) or listener).failing_since
        if since is None or gone or since <= now - micros(PATIENCE):
            step = {"id": listener.id, "gone": gone, "patience": micros(PATIENCE)}
            await self._store.write(
                [Step("subscription_failed", {**step, "problem": problem[:_LONGEST_PROBLEM]})]
            )
            await self.refresh()

    async def succeeded(self, listener: Listener) -> None:
        """An event was taken; written when that is news."""
        if listener.failing_since is not None:
            await self._store.write([Step("subscription_well", {"id": listener.id})])
            await self.refresh()
