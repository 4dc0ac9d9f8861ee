"""Tenant quotas: the channels a tenant may use and its messages per day.

A tenant without limits may use every channel. A quota counts messages when they are accepted, recipients of a
broadcast when it is frozen and occurrences of a schedule when they are made, per UTC day. Accepting and
freezing count in the transaction that writes them, so concurrent processes cannot exceed the quota. A
schedule checks before it makes an occurrence, so one catch-up step may exceed it.
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
_MAX_QUOTA = 10**12


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """The limits of one tenant; None means unlimited."""

    channels: frozenset[str] | None = None
    messages_per_day: int | None = None

    def describe(self) -> Mapping[str, Any]:
        """The limits as plain values."""
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
        """Steps that take `n` messages of today's quota; WriteConflict (`QUOTA_TAKE`) if too few are left."""
        most = self._most(tenant)
        if most is None:
            return []
        return [Step(QUOTA_TAKE, {"tenant": tenant, "day": now // DAY, "n": n, "most": most}, needed=True)]

    def used_up(self, tenant: str, now: int) -> RateLimited:
        """The error for a call that exceeds today's quota."""
        left = DAY - now % DAY
        return RateLimited(
            f"the tenant {tenant!r} has too few of its {self._most(tenant):,} messages left today",
            seconds=left // SECOND + 1,
            remedy="send less, or wait until midnight UTC",
        )

    async def check_left(self, store: Store, tenant: str, n: int, now: int) -> None:
        """Raise RateLimited if today's quota has fewer than `n` left; takes none."""
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
    """Parse the table [tenants.NAME]; raises Misconfigured."""
    place = f"tenants.{name}"
    if name == "default":
        problem = "the tenant default is the operator's and cannot have limits"
        raise Misconfigured(problem, remedy="Use another tenant name", field=place)
    if unknown := sorted(set(options) - set(TENANT_OPTIONS)):
        problem = f"unknown setting '{place}.{unknown[0]}'"
        raise Misconfigured(
            problem, remedy=f"Known settings: {', '.join(TENANT_OPTIONS)}", field=f"{place}.{unknown[0]}"
        )
    named, most = options.get("channels"), options.get("messages_per_day")
    if named is not None and not (isinstance(named, list) and all(one in channels for one in named)):
        known = ", ".join(sorted(channels))
        problem = f"{place}.channels is {named!r}, which is not a list of channels"
        raise Misconfigured(problem, remedy=f"Use some of: {known}", field=f"{place}.channels")
    if most is not None and not (isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= _MAX_QUOTA):
        problem = f"{place}.messages_per_day is {most!r}"
        raise Misconfigured(problem, remedy="Use a whole number; 0 allows none", field=f"{place}.messages_per_day")
    return TenantLimits(None if named is None else frozenset(named), most)
