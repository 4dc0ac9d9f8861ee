"""Channels by name: turns one table of the configuration into a channel, or says what is wrong with it.

A kind is one file with its `KIND`, and one line here; another package brings its own through the entry point
group `tidings.channels`.
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
    """The channel that a table of the configuration describes; raises Misconfigured."""
    known, settings = settings_of(name, kind, options)
    return known.make(settings, now or SystemClock().now)


def settings_of(name: str, kind: str, options: Mapping[str, object]) -> tuple[ChannelKind, Any]:
    """The kind and the settings that a table describes, judged; raises Misconfigured."""
    table = OptionsTable(f"Channel {name!r}", f"[channels.{name}]")
    known = KINDS.get(kind) or load_entry_point(ChannelKind, entry_points(group=GROUP, name=kind), table)
    if known is None:
        raise table.wrong("kind", f"{kind!r} is no kind of channel", hint(kind, KINDS))
    return known, table.settings_of(known, table.read(options, {**COMMON, **known.options}))
