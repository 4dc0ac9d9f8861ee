"""Test a channel's account without sending anything.

No database is needed, so a channel can be tested before one exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from ..model import durations
from ..model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown
from ..model.task import Category
from .channels.base import Channel, probe, unknown_channel

PROBE_GRACE = timedelta(seconds=2)  # added to the channel's own deadline


class ProbeResult(NamedTuple):
    """The result of a probe; `works` is None if only a send can tell."""

    name: str
    kind: str
    works: bool | None
    said: str
    category: Category | None = None
    remedy: str = ""


async def probe_channel(channels: Mapping[str, Channel], name: str) -> ProbeResult:
    """Probe one channel's account; raises NotFound for an unknown channel."""
    channel = channels.get(name)
    if channel is None:
        raise unknown_channel(name, channels)
    within = channel.traits.deadline + PROBE_GRACE
    try:
        async with asyncio.timeout(within.total_seconds()):
            outcome = await probe(channel)
    except TimeoutError:
        outcome = Retry(Category.TEMPORARY, f"no answer within {durations.humanize(within)}")
    return probe_result(name, channel.kind, outcome)


def probe_result(name: str, kind: str, outcome: Outcome) -> ProbeResult:
    """The result of an outcome, with a remedy."""
    match outcome:
        case Done(receipt=receipt):
            return ProbeResult(name, kind, True, receipt or "the provider answered")
        case Skip(why=why):
            remedy = f"send a message: tidings send --channel {name} --to ADDRESS --text hello --wait"
            return ProbeResult(name, kind, None, why, remedy=remedy)
        case Offline(reason=reason, needs_person=True):
            remedy = f"link the session again (tidings channels qr {name}), or fix its key and name"
            return ProbeResult(name, kind, False, reason, Category.PERMANENT, remedy)
        case Offline(reason=reason):
            remedy = "it reconnects automatically; if it does not, check the server that holds the session"
            return ProbeResult(name, kind, False, reason, Category.TEMPORARY, remedy)
        case Reject(category=category, reason=reason, whole_channel=True):
            remedy = f"fix the credentials or the account, see [channels.{name}]"
            return ProbeResult(name, kind, False, reason, category, remedy)
        case Reject(category=category, reason=reason):
            return ProbeResult(name, kind, False, reason, category, f"check the options of [channels.{name}]")
        case Retry(category=category, reason=reason):
            remedy = "try again later; if it persists, check the network and the channel's address"
            return ProbeResult(name, kind, False, reason, category, remedy)
        case Unknown(evidence=said) | Defer(why=said):
            return ProbeResult(name, kind, False, said, None, "try again later")
