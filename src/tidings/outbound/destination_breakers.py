"""A circuit breaker and Retry-After for each destination host of a channel, per tenant.

A failing or throttling receiver delays only its own messages and uses none of their attempts. The state is
stored in rows shared by all processes; each keeps a copy, so an attempt needs no query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple, Protocol, runtime_checkable

from ..kernel.breaker import BreakerRule, counts_as_failure
from ..kernel.receiver_breakers import BreakerWait, ReceiverBreakers
from ..model.message import Message
from ..model.outcome import Defer, Done, Outcome, Retry, Unknown
from ..model.time import iso, micros
from ..store.port import Row, Step, Store
from .channels.base import Channel

MAX_DESTINATIONS = 1000  # rows of one channel
_KEPT = timedelta(days=1)  # after its wait has ended
_LONGEST_REASON = 200
_SECONDS = 1.0  # between two reads of the rows


@runtime_checkable
class HasDestinations(Protocol):
    """Optional protocol of channels whose recipients are on different hosts."""

    def destination(self, recipient: str) -> str | None:
        """The host and port of a recipient."""


class Destination(NamedTuple):
    """A destination host of one tenant on one channel."""

    queue: str
    tenant: str
    host: str


class DestinationBreakers:
    """Breaker state of the destinations; an actor that shares it with other processes."""

    name = "destination_breakers"

    def __init__(
        self, store: Store, channels: Mapping[str, Channel], *, rule: BreakerRule, now: Callable[[], int]
    ) -> None:
        self._store = store
        self._channels = {name: one for name, one in channels.items() if isinstance(one, HasDestinations)}
        self._breakers: ReceiverBreakers[Destination] = ReceiverBreakers(rule, now, longest=rule.cooldown)
        self._unwritten: dict[Destination, BreakerWait | None] = {}  # None: recovered
        self._shared: frozenset[Destination] = frozenset()

    @property
    def has_any(self) -> bool:
        """Whether any channel has per-host destinations."""
        return bool(self._channels)

    def wait(self, message: Message) -> Defer | None:
        """Defer for a message whose destination is blocked; None if it may be sent."""
        place = self._place(message)
        blocked = None if place is None else self._breakers.blocked(place)
        if place is None or blocked is None:
            return None
        return Defer(blocked.until, f"no attempts to {place.host} until {iso(blocked.until)}: {blocked.reason}")

    def learn(self, message: Message, outcome: Outcome) -> None:
        """Update the destination's breaker from an attempt's outcome."""
        place = self._place(message)
        if place is None:
            return
        if isinstance(outcome, Done):
            if self._breakers.succeeded(place):
                self._unwritten[place] = None
            return
        wait = None
        if counts_as_failure(outcome):
            wait = self._breakers.failed(place, _reason(outcome, self._failures(place) + 1))
        if isinstance(outcome, Retry) and outcome.after is not None:
            wait = self._breakers.asked(place, outcome.after, f"it asked to wait ({outcome.reason})")
        if wait is not None:
            self._unwritten[place] = wait

    async def step(self) -> float:
        """Write local changes and read those of other processes."""
        await self._write()
        await self._read()
        return _SECONDS

    async def _write(self) -> None:
        """Write each row in its own transaction, so that processes cannot deadlock."""
        for place, wait in sorted(self._unwritten.items(), key=lambda item: item[0]):
            which = place._asdict()
            if wait is None:
                await self._store.write([Step("destination_well", which)])
            else:
                said = {"failures": wait.failures, "since": wait.since, "until": wait.until}
                reason = wait.reason[:_LONGEST_REASON]
                await self._store.write([Step("destination_wait", {**which, **said, "reason": reason})])
                trim = {"queue": place.queue, "most": MAX_DESTINATIONS, "kept": micros(_KEPT)}
                await self._store.write([Step("destination_trim", trim)])
            if self._unwritten.get(place) is wait:
                del self._unwritten[place]

    async def _read(self) -> None:
        rows = {_place(row): row for row in await self._store.read("destination_list")}
        for place, row in rows.items():
            known = self._breakers.known(place)
            if place not in self._unwritten and (known is None or known.until < row["until_at"]):
                self._breakers.take(
                    place, BreakerWait(row["failures"], row["until_at"], row["reason"], row["opened_at"])
                )
        for place in self._shared - rows.keys() - self._unwritten.keys():
            self._breakers.succeeded(place)  # another process reached it, or a person lifted it
        self._shared = frozenset(rows)

    def _failures(self, place: Destination) -> int:
        known = self._breakers.known(place)
        return 0 if known is None else known.failures

    def _place(self, message: Message) -> Destination | None:
        channel = self._channels.get(message.channel)
        host = None if channel is None else channel.destination(message.recipient)
        return None if host is None else Destination(message.channel, message.tenant, host)


def serialize_destination(row: Row, now: int) -> Row:
    """A destination row as API fields."""
    return {
        "tenant": row["tenant"],
        "host": row["host"],
        "state": "waiting" if row["until_at"] > now else "probing",
        "consecutive_failures": row["failures"],
        "since": iso(row["opened_at"]),
        "until": iso(row["until_at"]),
        "reason": row["reason"],
    }


def _place(row: Row) -> Destination:
    return Destination(row["queue"], row["tenant"], row["host"])


def _reason(outcome: Outcome, failures: int) -> str:
    said = outcome.evidence if isinstance(outcome, Unknown) else getattr(outcome, "reason", "")
    return f"{failures} failures in a row, the last: {said}"
