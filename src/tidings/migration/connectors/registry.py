"""Connectors by name: creates the source or target of a job's table, or says what is wrong with it.

A connector is one module with a `CONNECTOR`, and one line here. Other packages register theirs in the entry
point group `tidings.connectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from ...inputs.plugins import KindRegistry, OptionsTable, hint, load_entry_point
from ...kernel.clock import SystemClock
from .options import UNCONFINED, Confinement, Connector, ConnectorReach, Now
from .port import RecordSource, RecordTarget

GROUP = "tidings.connectors"
_NAMES = ("affinity", "attio", "csv", "http", "ndjson", "sql")
CONNECTORS: Mapping[str, Connector] = KindRegistry("CONNECTOR", __package__, _NAMES)


def source(
    kind: str, options: Mapping[str, object], *, now: Now | None = None, within: Confinement = UNCONFINED
) -> RecordSource:
    """Create the source that a table describes; raises Misconfigured."""
    known, settings = settings_of("source", kind, options, within=within)
    if known.source is None:
        raise _table("source").wrong("kind", f"{kind!r} cannot be a source", "Use it as the target")
    return known.source(settings, now or SystemClock().now)


def target(
    kind: str, options: Mapping[str, object], *, now: Now | None = None, within: Confinement = UNCONFINED
) -> RecordTarget:
    """Create the target that a table describes; raises Misconfigured."""
    known, settings = settings_of("target", kind, options, within=within)
    if known.target is None:
        raise _table("target").wrong("kind", f"{kind!r} cannot be a target", "Use it as the source")
    return known.target(settings, now or SystemClock().now)


def connector(kind: str, *, place: str = "source") -> Connector:
    """Return a connector by name, built-in or registered; raises Misconfigured."""
    known = CONNECTORS.get(kind) or load_entry_point(Connector, entry_points(group=GROUP, name=kind), _table(place))
    if known is None:
        everything = {*CONNECTORS, *(found.name for found in entry_points(group=GROUP))}
        raise _table(place).wrong("kind", f"unknown connector kind {kind!r}", hint(kind, everything))
    return known


def settings_of(
    place: str, kind: str, options: Mapping[str, object], *, within: Confinement = UNCONFINED
) -> tuple[Connector, Any]:
    """Return the connector and its validated settings without side effects; raises Misconfigured."""
    known = connector(kind, place=place)
    given = _table(place).read(options, known.options)
    if known.reach is ConnectorReach.FOLDER:
        given["root"] = within.root
    elif known.reach is ConnectorReach.NETWORK and within.rules is not None:
        given["rules"] = within.rules
    return known, _table(place).settings_of(known, given)


def _table(place: str) -> OptionsTable:
    return OptionsTable(f"The {place}", f"the {place}")
