"""What all parts of one dispatcher share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..kernel.clock import Clock
from ..kernel.handler import Handler
from ..kernel.lanes import Lane
from ..observability.events import Emit
from ..store.port import Store
from .claim_tokens import ClaimTokens
from .in_flight_tasks import DispatchTimeouts
from .rabbitmq import BrokerConnection


class DispatchContext(NamedTuple):
    """The connections, rules and clock of one dispatcher. `lanes` change with the flow control."""

    broker: BrokerConnection
    store: Store
    clock: Clock
    lanes: dict[str, Lane]
    queues: Collection[str]
    handlers: Mapping[str, Handler]
    terms: DispatchTimeouts
    tokens: ClaimTokens
    emit: Emit
