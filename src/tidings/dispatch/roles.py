"""Roles: which part of the work a process takes. Pure.

A part is a filter by name: channel and source `name` belong to part i of n when their stable hash says so.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..model.errors import Invalid


class ProcessRole(StrEnum):
    """What a process may do."""

    API = "api"  # accept, show, answer providers
    SCHEDULER = "scheduler"  # schedules, broadcasts, events, upkeep
    WORKER = "worker"  # claim and send
    POLLER = "poller"  # read the sources of inbound
    DISPATCHER = "dispatcher"  # claim, hand to transports by RabbitMQ, settle
    TRANSPORT = "transport"  # send what dispatchers hand out; no database


DEFAULT_ROLES = frozenset({ProcessRole.API, ProcessRole.SCHEDULER, ProcessRole.WORKER, ProcessRole.POLLER})
DATABASE_ROLES = frozenset(ProcessRole) - {ProcessRole.TRANSPORT}
WORKING_ROLES = frozenset(
    {ProcessRole.SCHEDULER, ProcessRole.WORKER, ProcessRole.POLLER, ProcessRole.DISPATCHER}
)


def partition_of(name: str, parts: int) -> int:
    """Which part a name belongs to, from 0; the same on every machine and in every version."""
    return zlib.crc32(name.encode()) % parts


@dataclass(frozen=True, slots=True)
class Partition:
    """Instance i of n; i counts from 1."""

    number: int
    of: int

    def has(self, name: str) -> bool:
        """Whether this name is in this part."""
        return partition_of(name, self.of) == self.number - 1


@dataclass(frozen=True, slots=True)
class ProcessShare:
    """What a process takes of the whole."""

    roles: frozenset[ProcessRole] = DEFAULT_ROLES
    queues: frozenset[str] | None = None  # only these channels; None: all
    part: Partition | None = None

    def takes(self, name: str) -> bool:
        """Whether this process serves a channel or reads a source of this name."""
        return (self.queues is None or name in self.queues) and (self.part is None or self.part.has(name))

    def check(self, known: Collection[str]) -> None:
        """Refuse a channel that does not exist."""
        if unknown := sorted((self.queues or frozenset()) - set(known)):
            remedy = f"use one of: {', '.join(sorted(known))}"
            raise Invalid(f"there is no channel {unknown[0]!r} to serve", remedy=remedy, field="queue")

    @property
    def works(self) -> bool:
        """Whether it does more than accept and show."""
        return bool(self.roles & WORKING_ROLES)

    @property
    def needs_database(self) -> bool:
        """Whether it may not do without one."""
        return bool(self.roles & DATABASE_ROLES)


def parse_share(roles: Iterable[str], queues: Iterable[str], partition: str | None) -> ProcessShare:
    """What the flags of `serve` say; raises Invalid."""
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
        raise Invalid(f"{word!r} is no role", remedy=remedy, field="role") from None


def _part(word: str) -> Partition:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", word)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise Invalid(
            f"{word!r} is no partition", remedy="write i/n, such as 1/3, 2/3 and 3/3", field="partition"
        )
    return Partition(int(found[1]), int(found[2]))
