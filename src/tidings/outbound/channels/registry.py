"""Build a channel from its table of the configuration.

A kind is one file with its `KIND` and one line here; other packages add kinds through the entry point group
`tidings.channels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from ...inputs.plugins import KindRegistry, OptionsTable, hint, load_entry_point
from ...kernel.clock import SystemClock
from .base import Channel
from .options import COMMON, ChannelKind, Now

GROUP = "tidings.channels"
_NAMES = (
    "apprise", "console", "discord", "email", "groupme", "http", "noop", "sandbox", "slack", "telegram",
    "twilio", "webhook", "whatsapp_cloud", "whatsapp_session",
)  # fmt: skip
KINDS: Mapping[str, ChannelKind] = KindRegistry("KIND", __package__, _NAMES)


def build(name: str, kind: str, options: Mapping[str, object], *, now: Now | None = None) -> Channel:
    """Build the channel of a configuration table; raises Misconfigured."""
    known, settings = settings_of(name, kind, options)
    return known.make(settings, now or SystemClock().now)


def settings_of(name: str, kind: str, options: Mapping[str, object]) -> tuple[ChannelKind, Any]:
    """The kind and the validated settings of a table; raises Misconfigured."""
    table = OptionsTable(f"Channel {name!r}", f"[channels.{name}]")
    known = KINDS.get(kind) or load_entry_point(ChannelKind, entry_points(group=GROUP, name=kind), table)
    if known is None:
        raise table.wrong("kind", f"unknown channel kind {kind!r}", hint(kind, KINDS))
    return known, table.settings_of(known, table.read(options, {**COMMON, **known.options}))
