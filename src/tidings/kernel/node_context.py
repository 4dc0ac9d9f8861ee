"""What the parts of one node's runner share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..observability.events import Emit
from ..store.port import Store
from .clock import Clock
from .handler import Handler
from .heartbeats import Node
from .lanes import Lane


class NodeContext(NamedTuple):
    """The store, the clock and the rules of one node incarnation."""

    store: Store
    clock: Clock
    node: Node
    lanes: Mapping[str, Lane]
    handlers: Mapping[str, Handler]
    emit: Emit
