"""Tenant limits: which channels a tenant may send on, and how many messages a day.

A tenant without limits may use every channel. A quota counts messages when they are accepted, recipients of a
broadcast when it is frozen and occurrences of a schedule when they are made, by the day in UTC. Accepting and
freezing take their share in the transaction that writes them, so no number of processes exceeds it. A
schedule looks before it makes an occurrence: one that catches up may exceed the quota by one step of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..model.errors import Forbidden, Misconfigured, RateLimited
from ..model.time import DAY, SECOND
from ..store.port import Step, Store

QUOTA_TAKE = "quota_take"
TENANT_OPTIONS = ("channels", "messages_per_day")
_MOST = 10**12


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What one tenant may do; None is no limit."""

    channels: frozenset[str] | None = None
    messages_per_day: int | None = None

    def describe(self) -> Mapping[str, Any]:
        """In plain values."""
        channels = None if self.channels is None else sorted(self.channels)
        given = {"channels": channels, "messages_per_day": self.messages_per_day}
        return {name: value for name, value in given.items() if value is not None}


class TenantQuotas:
    """The limits of all tenants."""

    def __init__(self, limits: Mapping[str, TenantLimits] = MappingProxyType({})) -> None:
        self._limits = limits

    def check_channel(self, tenant: str, channel: str) -> None:
        """Raise Forbidden for a channel that the tenant may not use."""
        limits = self._limits.get(tenant)
        if limits is not None and limits.channels is not None and channel not in limits.channels:
            raise Forbidden(
                f"the tenant {tenant!r} may not send on the channel {channel[:60]!r}",
                field="channel",
                remedy=f"use one of: {', '.join(sorted(limits.channels)) or 'none'}",
            )

    def take(self, tenant: str, n: int, now: int) -> list[Step]:
        """Steps that take `n` messages of today's quota; Outrun (`QUOTA_TAKE`) where it has too few left."""
        most = self._most(tenant)
        if most is None:
            return []
        return [Step(QUOTA_TAKE, {"tenant": tenant, "day": now // DAY, "n": n, "most": most}, needed=True)]

    def used_up(self, tenant: str, now: int) -> RateLimited:
        """The error for a call that takes more than is left."""
        left = DAY - now % DAY
        return RateLimited(
            f"the tenant {tenant!r} has too few of its {self._most(tenant):,} messages of today left",
            seconds=left // SECOND + 1,
            remedy="send less, or wait until midnight UTC",
        )

    async def check_left(self, store: Store, tenant: str, n: int, now: int) -> None:
        """Raise TooOften where today's quota has fewer than `n` left; takes none."""
        most = self._most(tenant)
        if most is None:
            return
        rows = await store.read("quota_used", tenant=tenant, day=now // DAY)
        if (rows[0]["n"] if rows else 0) + n > most:
            raise self.used_up(tenant, now)

    def _most(self, tenant: str) -> int | None:
        limits = self._limits.get(tenant)
        return None if limits is None else limits.messages_per_day


def read_tenant_limits(name: str, options: Mapping[str, Any], channels: Collection[str]) -> TenantLimits:
    """The table [tenants.NAME]; raises Misconfigured."""
    place = f"tenants.{name}"
    if name == "default":
        problem = "the tenant default runs the engine and has no limits"
        raise Misconfigured(problem, remedy="Give others a tenant of their own", field=place)
    if unknown := sorted(set(options) - set(TENANT_OPTIONS)):
        problem = f"unknown setting '{place}.{unknown[0]}'"
        raise Misconfigured(
            problem, remedy=f"Known are: {', '.join(TENANT_OPTIONS)}", field=f"{place}.{unknown[0]}"
        )
    named, most = options.get("channels"), options.get("messages_per_day")
    if named is not None and not (isinstance(named, list) and all(one in channels for one in named)):
        known = ", ".join(sorted(channels))
        problem = f"{place}.channels is {named!r}, which is not a list of channels"
        raise Misconfigured(problem, remedy=f"Use some of: {known}", field=f"{place}.channels")
    if most is not None and not (isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= _MOST):
        problem = f"{place}.messages_per_day is {most!r}"
        raise Misconfigured(
            problem, remedy="Use a whole number; 0 allows none", field=f"{place}.messages_per_day"
        )
    return TenantLimits(None if named is None else frozenset(named), most)
