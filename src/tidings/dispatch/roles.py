"""Process roles and partitions of the work. Pure.

A partition filters by name: channels and sources belong to partition i of n by a stable hash of their name.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..model.errors import Invalid


class ProcessRole(StrEnum):
    """What a process does."""

    API = "api"  # accepts and shows messages, receives callbacks
    SCHEDULER = "scheduler"  # schedules, broadcasts, events, maintenance
    WORKER = "worker"  # claims and sends
    POLLER = "poller"  # reads inbound sources
    DISPATCHER = "dispatcher"  # claims, publishes to transports through RabbitMQ, settles
    TRANSPORT = "transport"  # sends what dispatchers publish; has no database


DEFAULT_ROLES = frozenset({ProcessRole.API, ProcessRole.SCHEDULER, ProcessRole.WORKER, ProcessRole.POLLER})
DATABASE_ROLES = frozenset(ProcessRole) - {ProcessRole.TRANSPORT}
WORKING_ROLES = frozenset({ProcessRole.SCHEDULER, ProcessRole.WORKER, ProcessRole.POLLER, ProcessRole.DISPATCHER})


def partition_of(name: str, parts: int) -> int:
    """Return the partition of a name, from 0; the same on every machine and in every version."""
    return zlib.crc32(name.encode()) % parts


@dataclass(frozen=True, slots=True)
class Partition:
    """Instance i of n; i counts from 1."""

    number: int
    of: int

    def has(self, name: str) -> bool:
        return partition_of(name, self.of) == self.number - 1


@dataclass(frozen=True, slots=True)
class ProcessShare:
    """The part of the work that a process does."""

    roles: frozenset[ProcessRole] = DEFAULT_ROLES
    queues: frozenset[str] | None = None  # only these channels; None: all
    part: Partition | None = None

    def takes(self, name: str) -> bool:
        """Whether this process serves the channel or source of this name."""
        return (self.queues is None or name in self.queues) and (self.part is None or self.part.has(name))

    def check(self, known: Collection[str]) -> None:
        """Raise Invalid for an unknown channel."""
        if unknown := sorted((self.queues or frozenset()) - set(known)):
            remedy = f"use one of: {', '.join(sorted(known))}"
            raise Invalid(f"unknown channel {unknown[0]!r}", remedy=remedy, field="queue")

    @property
    def works(self) -> bool:
        """Whether it does more than accept and show messages."""
        return bool(self.roles & WORKING_ROLES)

    @property
    def needs_database(self) -> bool:
        return bool(self.roles & DATABASE_ROLES)


def parse_share(roles: Iterable[str], queues: Iterable[str], partition: str | None) -> ProcessShare:
    """Parse the options of `serve`; raises Invalid."""
    return ProcessShare(
        frozenset(map(_role, roles)) or DEFAULT_ROLES,
        frozenset(queues) or None,
        None if partition is None else _part(partition),
    )


def _role(word: str) -> ProcessRole:
    try:
        return ProcessRole(word)
    except ValueError:
        remedy = f"use one of: {', '.join(ProcessRole)}"
        raise Invalid(f"unknown role {word!r}", remedy=remedy, field="role") from None


def _part(word: str) -> Partition:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", word)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise Invalid(f"invalid partition {word!r}", remedy="use i/n, such as 1/3, 2/3 and 3/3", field="partition")
    return Partition(int(found[1]), int(found[2]))
